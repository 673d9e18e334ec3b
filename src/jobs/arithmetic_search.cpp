#include "jobs/arithmetic_search.hpp"

#include <algorithm>

#include "diagnose/faults/arithmetic.hpp"
#include "diagnose/findings.hpp"
#include "jobs/limits.hpp"
#include "judge/naming.hpp"
#include "pair/segments.hpp"

namespace parity {
namespace {

constexpr size_t kAtOnce = 12;

// The job's replays that values are judged by, in the order of LaneIndex.
ReplayOptions lane_option(size_t lane, const ReplayOptions& part) {
  ReplayOptions options = part;
  if (lane == kOracle)
    options.precision = Precision::fp64;
  else
    options.arithmetic = static_cast<Arithmetic>(lane - kRecorded);
  return options;
}

}  // namespace

ArithmeticSearch::ArithmeticSearch(const Dump& dump, const ProgramIndex& index, const Thresholds& limits, double work,
                                   int64_t bytes)
    : dump_(dump),
      index_(index),
      limits_(limits),
      work_(work),
      bytes_(bytes),
      work_of_ops_(work_of_ops(index.program())) {}

ArithmeticFound ArithmeticSearch::at(const Stretch& stretch) {
  ArithmeticFound found;
  std::vector<Hypotheses> tiers = arithmetic_changes(index_, stretch.ops, kExact);
  // What explained an earlier value comes first, and with it all that it could be mistaken for: fp16 for TF32.
  std::stable_partition(tiers.begin(), tiers.end(), [&](const Hypotheses& tier) {
    return std::any_of(tier.begin(), tier.end(), [&](const FaultHypothesis& h) { return seen_.contains(h.fault); });
  });
  for (Hypotheses& tier : tiers)
    if (try_some(stretch, std::move(tier), found)) break;
  if (const Finding* best = best_finding(found.findings, limits_);
      best != nullptr && best->explained() > kArithmeticSearch.found)
    seen_.insert(best->fault), found_.push_back(best->fault);
  return found;
}

// Does one of them, or of those before, explain the whole difference, or is no work left?
bool ArithmeticSearch::try_some(const Stretch& stretch, Hypotheses some, ArithmeticFound& found) {
  double stretch_work = 0;
  for (const size_t op : stretch.ops) stretch_work += work_of_ops_[op];
  for (size_t begin = 0; begin < some.size(); begin += kAtOnce) {
    const size_t end = std::min(some.size(), begin + kAtOnce);
    const double work = static_cast<double>(end - begin + kExact + 1) * stretch_work;
    work_ -= work;
    spent_ += work;
    if (work_ < 0) return true;
    const Hypotheses batch(some.begin() + static_cast<int64_t>(begin), some.begin() + static_cast<int64_t>(end));
    std::vector<Deviation> changes;
    for (const FaultHypothesis& h : batch) changes.push_back(h.deviation);
    const BoundaryEvent event{stretch.boundary, stretch.computed, run(stretch, changes, kExact + 1)};
    for (Finding& f : match_hypotheses(event, stretch.value, batch, stretch.final_op))
      if (f.fault != kGain) found.findings.push_back(std::move(f));
    found.tried.insert(found.tried.end(), batch.begin(), batch.end());
  }
  const Finding* best = best_finding(found.findings, limits_);
  return best != nullptr && best->explained() > kArithmeticSearch.found;
}

std::pair<double, std::vector<std::string>> ArithmeticSearch::news() {
  return {std::exchange(spent_, 0), std::exchange(found_, {})};
}

void ArithmeticSearch::hear(double work, const std::vector<std::string>& found) {
  work_ -= work;
  seen_.insert(found.begin(), found.end());
}

std::vector<DeviatingValue> ArithmeticSearch::run(const Stretch& stretch, const std::vector<Deviation>& changes,
                                                  size_t lanes) const {
  ReplayOptions part;
  part.part = std::make_shared<ProgramPart>(ProgramPart{stretch.ops, {stretch.boundary}, {}});
  part.given = stretch.given;
  std::vector<ReplayOptions> options;
  for (size_t lane = 0; lane < lanes; ++lane) options.push_back(lane_option(lane, part));
  std::vector<size_t> number;  // of `changes`, by the order in which they were started
  Variants variants(DeviationSource([&](int op) {
    std::vector<Deviation> starting;
    for (size_t i = 0; i < changes.size(); ++i)
      if (changes[i].rewrites.begin()->first == op) {
        starting.push_back(changes[i]);
        number.push_back(i);
      }
    return starting;
  }));
  variants.most_bytes = bytes_;
  std::vector<DeviatingValue> values;
  replay_in_step(
      dump_, index_.program(), options,
      [&](const BoundaryEvent& event) -> Replacements {
        for (const DeviatingValue& d : event.deviating) values.push_back({number[d.deviation], d.value.clone()});
        return {};
      },
      variants);
  return values;
}

std::vector<at::Tensor> ArithmeticSearch::under(const Stretch& stretch, const FaultHypothesis& change) const {
  std::vector<Deviation> changes(kLastValid + 1, change.deviation);
  for (size_t lane = 0; lane < changes.size(); ++lane) changes[lane].lane = lane;
  std::vector<at::Tensor> computed = stretch.computed;
  const std::vector<DeviatingValue> changed = run(stretch, changes, kLastValid + 1);
  for (const DeviatingValue& d : changed) computed[d.deviation] = d.value.to(computed[d.deviation].scalar_type());
  return changed.empty() ? std::vector<at::Tensor>() : computed;
}

}  // namespace parity
