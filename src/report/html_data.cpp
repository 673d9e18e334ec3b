// What report.html holds besides rows: verdict, method, coverage, cast placements, and the parts of other files here.
#include "report/html.hpp"
#include "report/json_parts.hpp"
#include "report/json_values.hpp"
#include "report/logits.hpp"
#include "report/summary.hpp"
#include "report/whole_program.hpp"

namespace parity {
namespace {

using nlohmann::json;

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
          {"method", texts(method_lines(report))},
          {"coverage_lines", texts(coverage_lines(report))},
          {"warnings", texts(report.warnings)},
          {"models", {plain(report.reference.model), plain(report.candidate.model)}},
          {"environment", html_environment(report)},
          {"causes", html_causes(report)},
          {"discriminator", discriminator_json(report)},
          {"next", next_json(report)},
          {"logits", texts(logit_lines(report))},
          {"whole", whole_json(report.whole)},
          {"whole_lines", report.whole ? texts(whole_program_lines(*report.whole)) : json::array()},
          {"since", since_baseline_json(report.since_baseline)},
          {"video", html_video(report.video.get())},
          {"coverage", html_coverage(report)},
          {"casts", html_casts(report.dtype_paths)},
          {"ops", std::move(ops)},
          {"strings", strings.take()}};
}

}  // namespace parity
