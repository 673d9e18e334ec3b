// parity-report/1 (reports/parity-report-1.schema.json): every key always there, null for what does not exist.
#include <algorithm>

#include "core/statistics.hpp"
#include "report/json_parts.hpp"
#include "report/json_values.hpp"
#include "report/logits.hpp"
#include "report/sink.hpp"

namespace parity {
namespace {

using nlohmann::json;

/// `stats` may be null: the same keys, all null.
json stats_json(const Stats* s, const OracleStats* oracle) {
  static const Stats kNone;
  const Stats& from = s ? *s : kNone;
  const auto when_measured = [&](auto x) { return s ? json(x) : json(nullptr); };
  const OracleStats o = oracle ? *oracle : OracleStats{};
  const bool has_worst = s && s->max_abs.has_value();
  json out = {{"count", when_measured(from.count)},
              {"nan_reference", when_measured(from.nan_reference)},
              {"nan_candidate", when_measured(from.nan_candidate)},
              {"special_mismatch", when_measured(from.special_mismatch)},
              {"zeros_reference", when_measured(from.zeros_reference)},
              {"worst_index", when_measured(from.worst_index)},
              {"worst_reference", has_worst ? value(from.worst_reference) : json(nullptr)},
              {"worst_candidate", has_worst ? value(from.worst_candidate) : json(nullptr)}};
  for (const auto& row : kStatistics) out[std::string(row.name)] = value(from.*row.field);
  for (const auto& row : kOracleStatistics) out[std::string(row.name)] = value(o.*row.field);
  return out;
}

json logic_json(const Logic& logic) {
  return {{"rel_l2", value(logic.rel_l2)},
          {"limit", value(logic.limit)},
          {"verdict", logic.verdict ? json(verdict_name(*logic.verdict)) : json(nullptr)}};
}

json limits_json(const std::vector<Limit>& limits) {
  json out = json::array();
  for (const Limit& l : limits)
    out.push_back({{"statistic", plain(l.statistic)},
                   {"value", value(l.value)},
                   {"at_least", l.at_least},
                   {"measured", value(l.measured)},
                   {"origin", plain(l.origin)}});
  return out;
}

json gate_json(Gate gate) { return gate == Gate::none ? json(nullptr) : json(gate_name(gate)); }

json explanations_json(const std::vector<Explanation>& list) {
  json out = json::array();
  for (const Explanation& e : list)
    out.push_back({{"fault", plain(e.change.fault)},
                   {"detail", plain(e.change.detail())},
                   {"place", plain(e.change.place)},
                   {"gate", gate_json(e.gate)},
                   {"amplitude", value(e.amplitude)},
                   {"z", value(e.z)},
                   {"explained", value(e.explained)},
                   {"rest", value(e.rest)},
                   {"null_amplitude", value(e.null_amplitude)},
                   {"detectable", value(e.detectable)}});
  return out;
}

json paths_json(const std::vector<DtypePath>& paths) {
  json out = json::array();
  for (const DtypePath& path : paths) {
    json candidates = json::array();
    for (const CastPlacement& c : path.candidates)
      candidates.push_back({{"name", plain(c.name)},
                            {"bitwise_equal_share", value(c.bitwise_equal_share)},
                            {"rel_l2", value(c.rel_l2)}});
    out.push_back({{"path", plain(path.path)},
                   {"side", plain(path.side)},
                   {"sentence", plain(path.sentence)},
                   {"best", path.candidates.empty() ? "" : plain(path.candidates.front().name)},
                   {"candidates", std::move(candidates)}});
  }
  return out;
}

json elements_json(const std::vector<Element>& elements) {
  json out = json::array();
  for (const Element& e : elements)
    out.push_back({{"index", e.index}, {"reference", value(e.reference)}, {"candidate", value(e.candidate)}});
  return out;
}

json histogram_json(const std::optional<Histogram>& histogram) {
  if (!histogram) return nullptr;
  return {{"equal", histogram->equal}, {"lowest", histogram->lowest}, {"counts", histogram->counts}};
}

json pairing_json(const std::optional<PairedBy>& by) {
  if (!by) return nullptr;
  return {{"witnesses", plain(by->witnesses)}, {"confidence", by->confidence}, {"rule", plain(by->rule)}};
}

json op_json(const OpResult& op) {
  return {{"index", op.index},
          {"reference", plain(op.reference)},
          {"path", plain(op.path)},
          {"candidate_path", plain(op.candidate_path)},
          {"pairing", pairing_json(op.paired_by)},
          {"kind", plain(op.kind)},
          {"call", op.call},
          {"dtype", plain(op.dtype)},
          {"tensor_dtype", plain(op.tensor_dtype)},
          {"shape", op.shape},
          {"verdict", verdict_name(op.verdict)},
          {"gate", gate_json(op.gate)},
          {"diagnosis", plain(op.diagnosis)},
          {"logic", logic_json(op.logic)},
          {"forced", stats_json(op.forced ? &*op.forced : nullptr, op.oracle ? &*op.oracle : nullptr)},
          {"free", stats_json(op.free ? &*op.free : nullptr, op.free_oracle ? &*op.free_oracle : nullptr)},
          {"limits", limits_json(op.limits)},
          {"amplification", value(op.amplification)},
          {"predicted_free", value(op.predicted_free)},
          {"blame", value(op.blame)},
          {"explanations", explanations_json(op.explanations)},
          {"worst", elements_json(op.worst)},
          {"histogram", histogram_json(op.histogram)},
          {"source", plain(op.source)},
          {"candidate_source", plain(op.candidate_source)},
          {"rerun", plain(op.rerun)}};
}

json divergence_json(const OpResult* op) {
  if (!op) return nullptr;
  return {{"path", plain(op->path)},
          {"call", op->call},
          {"candidate_path", plain(op->candidate_path)},
          {"reference", plain(op->reference)},
          {"kind", plain(op->kind)},
          {"dtype", plain(op->dtype)},
          {"gate", gate_json(op->gate)},
          {"source", plain(op->source)},
          {"candidate_source", plain(op->candidate_source)},
          {"diagnosis", plain(op->diagnosis)}};
}

json side_json(const Side& side) {
  return {{"path", plain(side.path)},
          {"sha256", plain(side.sha256)},
          {"model", plain(side.model)},
          {"producer", plain(side.producer)},
          {"details", side.details}};
}

json variants_json(const std::vector<VariantCoverage>& variants) {
  json out = json::array();
  for (const VariantCoverage& v : variants)
    out.push_back({{"from", plain(v.from)},
                   {"to", plain(v.to)},
                   {"named", v.named},
                   {"estimated", v.estimated},
                   {"run", v.run},
                   {"untried", v.untried},
                   {"why", plain(v.why)}});
  return out;
}

json coverage_json(const std::map<std::string, Coverage>& all) {
  json out = json::object();
  for (const auto& [reference, c] : all)
    out[plain(reference)] = {{"paired", c.paired},
                             {"covered", c.covered},
                             {"uncovered", c.uncovered},
                             {"unused", c.unused},
                             {"uncovered_paths", texts(c.uncovered_paths)},
                             {"unused_paths", texts(c.unused_paths)},
                             {"unmatched_candidates", texts(c.unmatched_candidates)},
                             {"opaque", texts(c.opaque)},
                             {"not_exercised", texts(c.not_exercised)},
                             {"granularity", plain(c.granularity)},
                             {"directions", c.directions},
                             {"sigma", c.sigma},
                             {"false_alarms", c.false_alarms},
                             {"variants", variants_json(c.variants)}};
  return out;
}

}  // namespace

json to_json(const Report& report) {
  json ops = json::array();
  for (const OpResult& op : report.ops) ops.push_back(op_json(op));
  return {{"schema", "parity-report/1"},
          {"command", plain(report.command)},
          {"date", plain(report.date)},
          {"seconds", value(report.seconds)},
          {"machine", report.machine.is_object() ? report.machine : json::object()},
          {"reference", side_json(report.reference)},
          {"candidate", side_json(report.candidate)},
          {"verdict", verdict_name(overall(report))},
          {"counts", count_verdicts(report)},
          {"first_divergence", divergence_json(first_divergence(report))},
          {"findings", findings_json(report)},
          {"discriminator", discriminator_json(report)},
          {"next", next_json(report)},
          {"coverage", coverage_json(report.coverage)},
          {"warnings", texts(report.warnings)},
          {"ops", std::move(ops)},
          {"dtype_paths", paths_json(report.dtype_paths)},
          {"logits", logits_json(report)},
          {"whole_program", whole_json(report.whole)},
          {"since_baseline", since_baseline_json(report.since_baseline)},
          {"video", video_section(report.video.get())}};
}

void write_json(const Report& report, const std::filesystem::path& file) {
  // Machine and details are others' JSON: bytes that are not UTF-8 are replaced, not a reason to lose the report.
  write_file(file, to_json(report).dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

}  // namespace parity
