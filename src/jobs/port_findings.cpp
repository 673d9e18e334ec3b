#include "jobs/port_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/dtype_kind.hpp"
#include "core/error.hpp"
#include "diagnose/limits.hpp"
#include "measure/local.hpp"
#include "measure/measure.hpp"
#include "measure/reordered.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

constexpr double kCertain = 99;  // sigma of a bitwise repetition
constexpr int kOrderRank = 2;    // a named change of the program that moves the same numbers says more
constexpr int kStaleRank = 2;    // a change that gives the value from the port's own inputs says more

// `difference`, from the reference's own kernels, by far more than valid arithmetics lie apart.
bool grossly_off(double difference, const BoundaryEvent& event, const std::vector<FaultHypothesis>& hypotheses) {
  if (difference == 0) return false;
  double noise = 0;
  for (const at::Tensor& other : valid_values(event, hypotheses))
    noise = std::max(noise, measure_sums(event.computed[kRecorded], other).difference_norm);
  return !(difference <= kFitting.gross * noise);
}

// From the port's own inputs: these are as old as the value is, or were the same before.
bool is_right(const at::Tensor& value, const at::Tensor& computed) {
  const auto flat = [](const at::Tensor& t) {
    return (t.is_complex() ? at::view_as_real(t.resolve_conj()) : t).reshape(-1).to(at::kFloat);
  };
  return same_but_for_rounding(flat(value), flat(computed), computed.scalar_type());
}

}  // namespace

PortFindings::PortFindings(const Dump& dump, const Program& program, const std::vector<Segment>& segments,
                           const Thresholds& limits, const VariantBudget& budget)
    : dump_(dump),
      program_(program),
      segments_(segments),
      limits_(limits),
      catalogue_(program, ReplaysOfFaults{kOracle, kRecorded, kExact}),
      plan_(plan_variants(catalogue_.index(), segments, catalogue_, kLanes, budget)),
      search_(dump, catalogue_.index(), limits,
              std::max(budget.least, budget.replays * static_cast<double>(kLanes) *
                                         std::accumulate(plan_.work.begin(), plan_.work.end(), double{0})),
              plan_.bytes) {}

const Variants& PortFindings::variants(const std::function<void(int op)>& begin) {
  variants_.start = [this, begin](int op) {
    begin(op);
    return start(op);
  };
  variants_.worth.assign(plan_.worth.size(), false);
  variants_.most_bytes = plan_.bytes;
  variants_.give_up = [this](size_t) { ++aside_.given_up; };
  return variants_;
}

void PortFindings::work_on(size_t boundary) {
  const std::vector<size_t>& ops = segments_[boundary].ops;
  if (ops.empty() || !beside(boundary)) return;
  for (size_t op = ops.front(); op <= ops.back(); ++op)
    if (plan_.worth[op]) variants_.worth[op] = true;
}

std::vector<Deviation> PortFindings::start(int op) {
  std::vector<Deviation> deviations;
  if (!variants_.worth[op]) return deviations;  // no value compared here moves with it, or it is searched
  for (FaultHypothesis& hypothesis : catalogue_.at(op)) {
    if (hypothesis.gross) continue;                               // run where a value is as far off as that
    const bool declarable = hypothesis.gate == Gate::dtype_path;  // and then run again: `under`
    deviations.push_back(declarable ? hypothesis.deviation : std::move(hypothesis.deviation));
    hypotheses_.push_back(std::move(hypothesis));
  }
  return deviations;
}

int64_t PortFindings::named() const {
  int64_t sum = 0;
  for (int op = 0; op < catalogue_.index().size(); ++op) sum += static_cast<int64_t>(catalogue_.count(op));
  return sum;
}

std::vector<Finding> PortFindings::at(const OpResult& row, const BoundaryEvent& event, const at::Tensor& value,
                                      const ValuesBefore& before) {
  const bool gross = grossly_off(row.forced->difference_norm, event, hypotheses_), apart = plan_.apart[row.index];
  std::vector<Finding> found = apart ? searched(row, event, value, before, gross ? Sought::all : Sought::not_gross)
                                     : match_hypotheses(event, value, hypotheses_, final_op(row.index));
  if (!apart) aside_.directions += static_cast<int64_t>(found.size());
  if (!apart && gross)
    for (Finding& f : searched(row, event, value, before, Sought::gross)) found.push_back(std::move(f));
  if (auto moved = gross ? in_another_order(row, event, value) : std::nullopt) found.push_back(std::move(*moved));
  if (auto older = stale(row, event, value, before.names)) found.push_back(std::move(*older));
  return found;
}

std::optional<Stretch> PortFindings::stretch_before(const OpResult& row, const BoundaryEvent& event,
                                                    const at::Tensor& value, const ValuesBefore& before) const {
  if (!before.misfit.empty()) return std::nullopt;
  Stretch stretch{static_cast<size_t>(row.index),
                  segments_[row.index].ops,
                  {},
                  "",
                  name(row.index),
                  event.computed,
                  value,
                  final_op(row.index)};
  for (const size_t b : before.boundaries) {
    if (const at::Tensor given = before.candidate(b); given.defined())
      stretch.given[program_.boundaries[b].value.id] = given;
    stretch.from += (stretch.from.empty() ? "" : ", ") + name(b);
  }
  if (stretch.from.empty()) stretch.from = "the inputs";
  return stretch;
}

std::vector<Finding> PortFindings::arithmetic(const OpResult& row, const BoundaryEvent& event, const at::Tensor& value,
                                              const ValuesBefore& before) {
  arithmetic_.clear();
  const std::optional<Stretch> stretch = stretch_before(row, event, value, before);
  if (!stretch) return {};
  if (catch_up) catch_up(static_cast<size_t>(row.index));
  try {
    ArithmeticFound found = search_.at(*stretch);
    aside_.directions += static_cast<int64_t>(found.findings.size());
    arithmetic_ = std::move(found.tried);
    return std::move(found.findings);
  } catch (const Error& error) {  // costs the names, not the verdict
    aside_.warnings.push_back(fmt::format("arithmetic before {} was not tried: {}", name(row.index), error.what()));
    return {};
  }
}

std::optional<BoundaryEvent> PortFindings::under(const OpResult& row, const BoundaryEvent& event,
                                                 const at::Tensor& value, const ValuesBefore& before,
                                                 const Finding& finding) {
  const std::optional<Stretch> stretch = stretch_before(row, event, value, before);
  if (!stretch) return std::nullopt;
  for (const Hypotheses* tried : {&arithmetic_, &hypotheses_})
    for (const FaultHypothesis& h : *tried) {
      if (!same_change(h, finding) || h.deviation.rewrites.empty()) continue;
      BoundaryEvent changed{event.boundary, search_.under(*stretch, h), event.deviating};
      if (changed.computed.empty()) continue;  // an op of this name in another call
      // The other named changes are put beside it, to first order.
      for (DeviatingValue& d : changed.deviating) {
        const size_t lane = hypotheses_[d.deviation].deviation.lane;
        d.value = raised(d.value) - raised(event.computed[lane]) + raised(changed.computed[lane]);
      }
      return changed;
    }
  return std::nullopt;
}

std::vector<Finding> PortFindings::searched(const OpResult& row, const BoundaryEvent& event, const at::Tensor& value,
                                            const ValuesBefore& before, Sought sought) {
  const at::ScalarType dtype = program_.boundaries[row.index].value.dtype;
  if (!is_float(dtype) || equal_share(*row.forced) == 1) return {};  // nothing to explain
  const std::optional<Stretch> stretch = stretch_before(row, event, value, before);
  if (!stretch) return {};
  try {
    Searched searched = search_stretch(dump_, program_, catalogue_, plan_, limits_, *stretch, sought);
    aside_.directions += searched.directions;
    if (searched.coverage.run < searched.coverage.named) aside_.variants.push_back(std::move(searched.coverage));
    return std::move(searched.findings);
  } catch (const Error& error) {  // costs the names, not the verdict
    aside_.warnings.push_back(fmt::format("named changes before {} were not tried: {}", name(row.index), error.what()));
    return {};
  }
}

std::optional<Finding> PortFindings::in_another_order(const OpResult& row, const BoundaryEvent& event,
                                                      const at::Tensor& value) const {
  const std::optional<Reordered> other = reordered(event.computed[kRecorded], value);
  if (!other) return std::nullopt;
  FaultHypothesis h{order_fault(catalogue_.index(), final_op(row.index), value.sizes().vec(), *other), other->detail,
                    name(row.index)};
  h.rank = kOrderRank;
  return match_value(event, value, hypotheses_, h, other->value);
}

std::optional<Finding> PortFindings::stale(const OpResult& row, const BoundaryEvent& event, const at::Tensor& value,
                                           const std::set<std::string>& inputs) {
  const at::Tensor& own = event.computed[kOwn];
  std::string older = stale_.seen_before(row.path, row.call, value, own, inputs), as = "bitwise what the candidate has";
  if (older.empty()) {
    older = stale_.like_reference(row.path, row.call, value, event.computed[kRecorded]);
    as = "but for rounding what the reference has";
    if (inputs.contains(older)) older.clear();
  }
  if (older.empty() || is_right(value, event.computed[kRecorded])) return std::nullopt;
  Finding f{"stale value", as, older, Gate::logic};
  f.fit.amplitude = f.fit.explained = f.fit.correlation = f.fit.size = 1;  // bit by bit: certain
  f.fit.z = f.fit.z_rows = kCertain;
  f.rest = 0;
  f.rank = kStaleRank;
  return f;
}

void PortFindings::pass(const OpResult& row, const BoundaryEvent& event, const at::Tensor& value,
                        const ValuesBefore& before) {
  stale_.seen_before(row.path, row.call, value, event.computed[kOwn], before.names);
}

Aside PortFindings::aside() {
  std::tie(aside_.arithmetic_work, aside_.arithmetic_found) = search_.news();
  return std::exchange(aside_, {});
}

void PortFindings::remember(size_t boundary, const at::Tensor& value) {
  const Boundary& skipped = program_.boundaries[boundary];
  if (!is_op_path(skipped.path)) stale_.remember(skipped.path, skipped.call, value);
}

void PortFindings::report(const Aside& all, Coverage& coverage, std::vector<std::string>& warnings) const {
  coverage.directions = all.directions;
  coverage.variants = all.variants;
  warnings.insert(warnings.end(), all.warnings.begin(), all.warnings.end());
  const int64_t given_up = all.given_up + aside_.given_up;
  if (given_up == 0) return;
  const auto started = static_cast<int64_t>(hypotheses_.size());
  coverage.variants.push_back({"the inputs", "the end", started, 0, started - given_up, given_up, "budget of memory"});
}

// The op that computed a value, through views and copies of it; -1 for leaves.
int PortFindings::final_op(size_t boundary) const {
  const ProgramIndex& index = catalogue_.index();
  int op = index.producer(program_.boundaries[boundary].value.id);
  while (op >= 0 && program_.ops[op].view && index.argument(op, 0) >= 0 && index.producer(index.argument(op, 0)) < op &&
         index.producer(index.argument(op, 0)) >= 0)
    op = index.producer(index.argument(op, 0));
  return op;
}

std::string PortFindings::name(size_t boundary) const {
  const std::string& path = program_.boundaries[boundary].path;
  return path.empty() ? "the model's result" : path;
}

}  // namespace parity
