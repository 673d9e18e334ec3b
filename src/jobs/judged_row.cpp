#include "jobs/judged_row.hpp"

#include <fmt/format.h>

#include "diagnose/findings.hpp"
#include "jobs/limits.hpp"
#include "judge/declared.hpp"
#include "judge/naming.hpp"
#include "judge/port.hpp"
#include "measure/local.hpp"

namespace parity {
namespace {

const std::vector<FaultHypothesis>& started(const PortFindings* findings) {
  static const std::vector<FaultHypothesis> kNone;
  return findings != nullptr ? findings->started() : kNone;
}

Evidence evidence_of(const RowValues& v, const BoundaryEvent& event, const PortFindings* findings) {
  const at::Tensor& recorded = event.computed[kRecorded];
  const bool fits = event.computed[kOracle].sizes() == recorded.sizes();  // in fp64 a router may choose otherwise
  return measure_local(
      {v.value, fits ? event.computed[kOracle] : raised(recorded), recorded, valid_values(event, started(findings))});
}

bool unexplained(const OpResult& row, const Evidence& evidence, const std::vector<Finding>& found,
                 const Thresholds& limits) {
  if (row.verdict != Verdict::fail || (row.gate != Gate::logic && row.gate != Gate::dtype_path)) return false;
  if (!at::isFloatingType(evidence.reference_dtype) || !(evidence.error < kArithmeticSearch.largest)) return false;
  const Finding* best = best_finding(found, limits);
  return best == nullptr || best->explained() < kArithmeticSearch.whole;
}

struct Declared {
  std::string rule;
  const Finding* change = nullptr;
};

// As headings have it, without the place: "missing rounding: add kept wide".
std::string whole_name(const Finding& name) { return fmt::format("{}: {}", name.fault, name.what); }

// What is named, or cannot be told from it, if it is declared.
Declared declared(const OpResult& row, const Finding* best, const std::vector<Finding>& found,
                  const Thresholds& limits) {
  if (row.verdict != Verdict::fail || row.gate != Gate::dtype_path || best == nullptr) return {};
  std::vector<const Finding*> names = equally_good_names(*best, found, limits);
  names.insert(names.begin(), best);
  for (const Finding* name : names)
    if (const auto rule = declaring_rule(limits, {name->fault, whole_name(*name)})) return {*rule, name};
  return {};
}

// A port may be given the tokens that the reference's run chose, whatever its own logits say.
bool has_what_the_reference_picked(OpResult& row, const RowValues& v, const Thresholds& limits) {
  const BoundaryEvent own{
      v.event.boundary, std::vector<at::Tensor>(v.event.computed.size(), v.event.computed[kOwn]), {}};
  judge_port(row, evidence_of(v, own, nullptr), v.segment, {}, limits);
  return row.verdict == Verdict::pass;
}

// Rows that are selected by the port's own values (experts' tokens) may be more or fewer than those that it has.
bool selects_otherwise(OpResult& row, const RowValues& v) {
  const at::Tensor& computed = v.event.computed[kRecorded];
  if (computed.sizes() == v.value.sizes()) return false;
  row.verdict = Verdict::shape;
  row.gate = Gate::structure;
  row.diagnosis =
      fmt::format("shape differs: the reference's program makes {} of the port's own values, the port has {}",
                  c10::str(computed.sizes()), c10::str(v.value.sizes()));
  return true;
}

}  // namespace

std::vector<Finding> judge_row(OpResult& row, const RowValues& v, PortFindings* findings, const Thresholds& limits) {
  if (selects_otherwise(row, v)) return {};
  const Evidence evidence = evidence_of(v, v.event, findings);
  row.forced = evidence.forced, row.oracle = evidence.oracle;
  const OpResult measured = row;
  if (v.segment.picks && row.forced->difference_norm > 0) {
    OpResult picked = measured;
    if (has_what_the_reference_picked(picked, v, limits)) return row = std::move(picked), std::vector<Finding>();
  }
  std::vector<Finding> found =
      findings != nullptr ? findings->at(row, v.event, v.value, v.before) : std::vector<Finding>();
  judge_port(row, evidence, v.segment, found, limits);
  if (findings != nullptr && unexplained(row, evidence, found, limits)) {
    const std::vector<Finding> more = findings->arithmetic(row, v.event, v.value, v.before);
    found.insert(found.end(), more.begin(), more.end());
    row = measured;
    judge_port(row, evidence, v.segment, found, limits);
  }
  const Finding* best = best_finding(found, limits);
  const auto [rule, change] = declared(row, best, found, limits);
  if (change == nullptr) return found;
  const auto under = findings->under(row, v.event, v.value, v.before, *change);
  if (!under) return found;
  const std::string why = row.diagnosis;
  row = measured;
  std::vector<Finding> left = match_hypotheses(*under, v.value, started(findings), -1);
  std::erase_if(left, [&](const Finding& f) { return same_change(f, *change); });
  Evidence beside = evidence_of(v, *under, findings);
  if (change->fault == "missing rounding" || change->fault == "extra rounding")
    beside.reference_dtype = beside.candidate_dtype;  // that is what is declared
  beside.settled.reset();  // a change may round inside: whose rows fall on the other side of a tie is chance
  judge_port(row, beside, v.segment, left, limits);
  if (row.verdict == Verdict::pass) {
    row.diagnosis = why;
    pass_as_declared(row, rule);
    return found;
  }
  row.diagnosis = fmt::format("{}; beside what is {}", row.diagnosis, declared_text(rule, why));
  return left;
}

void judge_folded(OpResult& row, const RowValues& v, const PortFindings* findings, const std::string& value,
                  const Thresholds& limits) {
  const Evidence evidence = evidence_of(v, v.event, findings);
  row.forced = evidence.forced;
  row.oracle = evidence.oracle;
  judge_port(row, evidence, v.segment, {}, limits);
  if (row.verdict != Verdict::fail) return;
  row.gate = Gate::logic;
  row.declarable = "folded into weights";
  row.diagnosis = fmt::format("{} (the value is {}): what the port has after it follows from the reference's value",
                              row.declarable, value);
  if (const auto rule = declaring_rule(limits, {row.declarable, row.path})) pass_as_declared(row, *rule);
}

}  // namespace parity
