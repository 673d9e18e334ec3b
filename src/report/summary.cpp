#include "report/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "report/growth.hpp"
#include "report/limit_use.hpp"
#include "report/markup.hpp"
#include "report/video.hpp"

namespace parity {
namespace {

void keep(std::optional<double>& kept, std::optional<double> value, bool smallest) {
  if (value && (!kept || (smallest ? *value < *kept : *value > *kept))) kept = value;
}

void add(const OpResult& op, KindRow& row) {
  ++row.count;
  ++row.verdicts[op.verdict];
  keep(row.worst_logic, op.logic.rel_l2, false);
  if (op.forced) {
    keep(row.worst_rel_l2, op.forced->rel_l2, false);
    keep(row.min_equal_share, op.forced->bitwise_equal_share, true);
    keep(row.max_ulp, op.forced->max_ulp, false);
  }
  if (op.free) keep(row.worst_free, op.free->rel_l2, false);
}

std::vector<const OpResult*> select(const Report& report, bool (*wanted)(Verdict)) {
  std::vector<const OpResult*> out;
  for (const OpResult& op : report.ops)
    if (wanted(op.verdict)) out.push_back(&op);
  return out;
}

constexpr size_t kShownNames = 3, kLongestName = 60, kLongestReason = 120;  // of a list that the files have in full

constexpr std::string_view kAtenVariant =
    "fp64 logic: the candidate's ops are wrappers of ATen's, and the recorded program is ATen's, too: an error of "
    "exactly "
    "0 there shows that formula, constants and order agree, not that an independent arithmetic gives the same";

std::string first_names(std::vector<std::string> names, size_t longest = kLongestName) {
  const bool more = names.size() > kShownNames;
  names.resize(std::min(names.size(), kShownNames));
  for (std::string& name : names) name = shortened_text(name, longest);
  return fmt::format("{}{}", fmt::join(names, ", "), more ? ", …" : "");
}

bool is_red(Verdict v) { return v == Verdict::fail || v == Verdict::shape; }
bool is_undecided(Verdict v) { return v != Verdict::pass && !is_red(v); }

}  // namespace

std::vector<KindRow> by_kind(const Report& report) {
  return by_kind(select(report, [](Verdict) { return true; }));
}

std::vector<KindRow> by_kind(const std::vector<const OpResult*>& chosen) {
  std::vector<std::string> dtypes;
  std::map<std::pair<size_t, std::string>, KindRow> rows;
  for (const OpResult* row_of_kind : chosen) {
    const OpResult& op = *row_of_kind;
    const auto found = std::find(dtypes.begin(), dtypes.end(), op.dtype);
    const auto place = static_cast<size_t>(found - dtypes.begin());
    if (found == dtypes.end()) dtypes.push_back(op.dtype);
    KindRow& row = rows[{place, op.kind}];
    row.dtype = op.dtype;
    row.kind = op.kind.empty() ? "?" : op.kind;
    add(op, row);
  }
  std::vector<KindRow> out;
  out.reserve(rows.size());
  for (auto& [key, row] : rows) out.push_back(std::move(row));
  return out;
}

std::string verdicts_text(const std::map<Verdict, int64_t>& verdicts) {
  std::vector<std::string> parts;
  for (const Verdict v : kWorstFirst)
    if (const auto found = verdicts.find(v); found != verdicts.end())
      parts.push_back(fmt::format("{} {}", verdict_name(v), found->second));
  return fmt::format("{}", fmt::join(parts, ", "));
}

Verdict worst(const std::map<Verdict, int64_t>& verdicts) {
  for (const Verdict v : kWorstFirst)
    if (verdicts.count(v)) return v;
  return Verdict::untrusted;  // nothing was counted
}

std::vector<const OpResult*> failures(const Report& report) { return select(report, is_red); }
std::vector<const OpResult*> undecided(const Report& report) { return select(report, is_undecided); }

namespace {

// A pass speaks for what was compared: said where most of what the port recorded was not.
std::string mostly_left_out(const Report& report) {
  size_t left_out = 0;
  int64_t compared = 0;
  for (const auto& [reference, c] : report.coverage) left_out += c.unmatched_candidates.size(), compared += c.paired;
  if (static_cast<int64_t>(left_out) <= compared) return "";
  return fmt::format(" {} tensors of the candidate, most that it has, are not among them.", left_out);
}

std::string headline_of_rows(const Report& report) {
  if (report.ops.empty()) return "INCONCLUSIVE: nothing was compared.";
  const size_t all = report.ops.size(), bad = failures(report).size(), open = undecided(report).size();
  const std::string undecided_part =
      open == 0 ? "" : fmt::format("{} {} inconclusive, missing or untrusted", open, open == 1 ? "is" : "are");
  if (bad > 0)
    return fmt::format("FAIL: {} of {} comparisons {}{}{}.", bad, all, bad == 1 ? "fails" : "fail", open ? "; " : "",
                       undecided_part);
  if (open > 0) return fmt::format("INCONCLUSIVE: of {} comparisons none fails, but {}.", all, undecided_part);
  return (all == 1 ? "PASS: the one comparison passes." : fmt::format("PASS: all {} comparisons pass.", all)) +
         mostly_left_out(report);
}

}  // namespace

// "PASS: all 54 comparisons pass. Video: PASS: …", the worse of the two in front.
std::string headline(const Report& report) {
  const std::string rows = headline_of_rows(report);
  if (!report.video) return rows;
  const std::string clips = video_headline(*report.video), verdict = verdict_name(overall(report));
  std::string capitals;
  for (const char c : verdict) capitals += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return rows.starts_with(capitals)
             ? fmt::format("{} Video: {}.", rows, clips)
             : fmt::format("{}: video, {}. Ops: {}", capitals, clips.substr(clips.find(": ") + 2), rows);
}

std::string divergence_sentence(const Report& report) {
  const OpResult* op = first_divergence(report);
  if (!op) return "";
  return fmt::format("First divergence: {} ({}, {}), gate {}", row_name(*op), op->kind, op->dtype, gate_name(op->gate));
}

std::string totals_text(const Report& report) {
  std::vector<std::string> parts;
  const auto counts = count_verdicts(report);
  for (auto v = kWorstFirst.rbegin(); v != kWorstFirst.rend(); ++v)
    parts.push_back(fmt::format("{} {}", verdict_name(*v), counts.at(verdict_name(*v))));
  return fmt::format("{}", fmt::join(parts, " · "));
}

std::string coverage_line(const Coverage& c) {
  std::string line =
      fmt::format("{} points of the reference compared, {} inside a later compared one, {} without counterpart",
                  c.paired, c.covered, c.uncovered);
  if (c.unused > 0) line += fmt::format(", {} that no output uses", c.unused);
  if (!c.unmatched_candidates.empty())
    line += fmt::format("; {} candidate tensors without reference ({})", c.unmatched_candidates.size(),
                        first_names(c.unmatched_candidates));
  if (!c.not_exercised.empty())
    line += fmt::format("; {} compared values show little (constant, zero or empty)", c.not_exercised.size());
  if (!c.opaque.empty())
    line += fmt::format("; {} {} not replayed, recorded values used: {}", c.opaque.size(),
                        c.opaque.size() == 1 ? "op" : "ops", first_names(c.opaque, kLongestReason));
  return line;
}

std::vector<std::string> coverage_lines(const Report& report) {
  std::vector<std::string> out;
  for (const auto& [reference, c] : report.coverage)
    out.push_back((reference.empty() ? "" : reference + ": ") + coverage_line(c));
  return out;
}

std::vector<ReferenceRow> reference_rows(const Report& report) {
  std::vector<ReferenceRow> out;
  const auto text = [](const nlohmann::json& from, const char* key) {
    return from.contains(key) && from[key].is_string() ? from[key].get<std::string>() : std::string();
  };
  const nlohmann::json& details = report.reference.details;
  if (!details.is_object()) return out;
  if (!details.contains("dumps")) {
    if (const std::string code = text(details, "code"); !code.empty())
      out.push_back({report.reference.path, report.reference.model, code});
    return out;
  }
  for (const nlohmann::json& dump : details["dumps"])
    out.push_back({text(dump, "name"), text(dump, "model"), text(dump, "code")});
  return out;
}

std::string variants_line(const VariantCoverage& v) {
  std::string line = fmt::format("Named changes between {} and {}: {} known", v.from, v.to, v.named);
  if (v.estimated > 0) line += fmt::format(", {} put against the difference to first order", v.estimated);
  line += fmt::format(", {} run", v.run);
  return v.untried > 0 ? line + fmt::format("; {} not tried: {}", v.untried, v.why) : line;
}

std::string growth_line(const Growth& g) {
  return fmt::format(
      "Free-running error over the {} {} in {}: grows as depth^{:.2f} (independent roundings .5, a bias 1)", g.depth,
      g.pattern, g.dtype, g.exponent);
}

// The smallest error that fails by its size alone, whatever its direction: what a pass promises.
std::string power_line(const Report& report) {
  std::vector<std::pair<double, const OpResult*>> smallest;
  for (const OpResult& op : report.ops)
    for (const Limit& limit : op.limits)
      if (limit.statistic == "candidate_error") smallest.emplace_back(limit.value, &op);
  if (smallest.empty()) return "";
  std::sort(smallest.begin(), smallest.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return fmt::format(
      "Power: any error above {:.2g} of the norm fails by its size alone (median of {} compared points; {:.2g} at {}); "
      "changes that the catalogue names are found below that",
      smallest[smallest.size() / 2].first, smallest.size(), smallest.back().first, row_name(*smallest.back().second));
}

std::string wrapper_line(const Report& report) {
  const bool wraps = report.candidate.details.is_object() && report.candidate.details.value("variant", "") == "aten";
  return wraps ? std::string(kAtenVariant) : "";
}

std::vector<std::string> method_lines(const Report& report) {
  std::vector<std::string> out;
  std::map<std::string, int> codes;
  for (const ReferenceRow& row : reference_rows(report)) ++codes[row.code.empty() ? "code unknown" : row.code];
  std::vector<std::string> counted;
  for (const auto& [code, count] : codes) counted.push_back(fmt::format("{} of {}", count, code));
  if (!counted.empty()) out.push_back(fmt::format("References: {}", fmt::join(counted, ", ")));
  if (const std::string line = wrapper_line(report); !line.empty()) out.push_back(line);
  for (const Growth& g : error_growth(report)) out.push_back(growth_line(g));
  for (const auto& [reference, c] : report.coverage) {
    if (!c.granularity.empty()) out.push_back("Granularity: " + c.granularity);
    for (const VariantCoverage& v : c.variants) out.push_back(variants_line(v));
    if (c.directions > 0)
      out.push_back(fmt::format(
          "{} named changes projected on, each believed from {:.1f} sigma on: {:g} false alarms expected in "
          "the whole run (Sidak)",
          c.directions, c.sigma, c.false_alarms));
  }
  if (const std::string power = power_line(report); !power.empty()) out.push_back(power);
  return out;
}

namespace {

// What a path says only to those who know FORMAT.md: the root module has no name to stand before its ops and results.
std::string meaning_of(const std::string& path) {
  if (path.starts_with('/')) return " (an op of the model itself, in none of its modules)";
  if (path.starts_with('~')) return " (an op outside the model)";
  const bool result = path.starts_with('[') && path.size() > 2 && path.size() < 8 &&
                      path.find_first_not_of("0123456789", 1) == path.size() - 1 && path.ends_with(']');
  return result ? fmt::format(" (value {} of those that the model returns)", std::stoi(path.substr(1)) + 1) : "";
}

}  // namespace

std::string path_name(const OpResult& op) {
  const std::string name = op.path.empty() ? "(the model's result)" : op.path + meaning_of(op.path);
  return op.call > 0 ? fmt::format("{} call {}", name, op.call) : name;
}

std::string row_name(const OpResult& op) {
  return op.reference.empty() ? path_name(op) : fmt::format("{}: {}", op.reference, path_name(op));
}

std::vector<std::string> limit_lines(const OpResult& op) {
  std::vector<std::string> out;
  if (op.logic.limit)
    out.push_back(fmt::format("fp64 logic: rel_l2 {} (must be <= {:.3g})", number(op.logic.rel_l2), *op.logic.limit));
  for (const Limit& l : op.limits) out.push_back(limit_line(op, l));
  return out;
}

}  // namespace parity
