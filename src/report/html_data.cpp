// What report.html holds besides rows: verdict, both sides, coverage, cast placements.
#include <cmath>

#include "report/html.hpp"
#include "report/json_values.hpp"
#include "report/summary.hpp"

namespace parity {
namespace {

using nlohmann::json;

constexpr int kDeepest = 16;  // of others' JSON; nobody reads further

// Others' JSON with every text made plain.
json plain_json(const json& from, int depth = 0) {
  if (depth > kDeepest) return "…";
  if (from.is_string()) return plain(from.get_ref<const std::string&>());
  if (from.is_array()) {
    json out = json::array();
    for (const json& item : from) out.push_back(plain_json(item, depth + 1));
    return out;
  }
  if (!from.is_object()) return from;
  json out = json::object();
  for (const auto& [key, item] : from.items()) out[plain(key)] = plain_json(item, depth + 1);
  return out;
}

json html_side(const Side& side) {
  return {{"path", plain(side.path)},
          {"sha256", plain(side.sha256)},
          {"model", plain(side.model)},
          {"producer", plain(side.producer)},
          {"details", plain_json(side.details)}};
}

json html_coverage(const Report& report) {
  json out = json::array();
  for (const auto& [reference, c] : report.coverage)
    out.push_back({{"reference", plain(reference)},
                   {"paired", c.paired},
                   {"covered", c.covered},
                   {"uncovered", c.uncovered},
                   {"unused", c.unused},
                   {"uncovered_paths", texts(c.uncovered_paths)},
                   {"unmatched", texts(c.unmatched_candidates)},
                   {"opaque", texts(c.opaque)},
                   {"not_exercised", texts(c.not_exercised)}});
  return out;
}

json html_casts(const std::vector<DtypePath>& paths) {
  json out = json::array();
  for (const DtypePath& path : paths) {
    json tried = json::array();
    for (const CastPlacement& c : path.candidates)
      tried.push_back({plain(c.name), value(c.bitwise_equal_share), value(c.rel_l2)});
    out.push_back({{"path", plain(path.path)},
                   {"side", plain(path.side)},
                   {"sentence", plain(path.sentence)},
                   {"tried", std::move(tried)}});
  }
  return out;
}

}  // namespace

json html_data(const Report& report, size_t most) {
  HtmlStrings strings;
  const OpResult* first = first_divergence(report);
  json ops = html_ops(report, most, strings);
  return {{"command", plain(report.command)},
          {"date", plain(report.date)},
          {"seconds", value(report.seconds)},
          {"version", PARITY_VERSION},
          {"most", most},
          {"verdict", verdict_name(overall(report))},
          {"headline", plain(headline(report))},
          {"sentence", plain(divergence_sentence(report))},
          {"first", first ? json(first - report.ops.data()) : json(nullptr)},
          {"counts", count_verdicts(report)},
          {"method", texts(method_lines(report))},
          {"coverage_lines", texts(coverage_lines(report))},
          {"warnings", texts(report.warnings)},
          {"machine", plain_json(report.machine)},
          {"reference", html_side(report.reference)},
          {"candidate", html_side(report.candidate)},
          {"coverage", html_coverage(report)},
          {"casts", html_casts(report.dtype_paths)},
          {"ops", std::move(ops)},
          {"strings", strings.take()}};
}

}  // namespace parity
