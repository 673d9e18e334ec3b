// What explains the values that a port has: named changes of the reference's program, run beside its replays or, where
// a long stretch lies before a compared value, searched when that is reached; and older values that it repeats.
#pragma once
#include <functional>
#include <set>

#include "core/segment.hpp"
#include "diagnose/finding.hpp"
#include "diagnose/findings.hpp"
#include "diagnose/stale.hpp"
#include "jobs/arithmetic_search.hpp"
#include "jobs/stretch_search.hpp"
#include "jobs/unit.hpp"
#include "judge/limits.hpp"

namespace parity {

/// The compared values that a value is computed from.
struct ValuesBefore {
  std::vector<size_t> boundaries;
  std::function<at::Tensor(size_t boundary)> candidate;  // the candidate's, undefined where its shape does not fit
  std::set<std::string> names;                           // every path under which they are compared
  std::string misfit{};  // the first whose shape does not fit: nothing is searched behind it
};

class PortFindings {
 public:
  /// `limits` stay with the caller; `segments` as in plan_variants.
  PortFindings(const Dump& dump, const Program& program, const std::vector<Segment>& segments, const Thresholds& limits,
               const VariantBudget& budget);

  /// The runs beside the replays. `begin`: called before each op; it tells by `work_on` which values are to be
  /// explained here whose stretch of program begins there. The runs stay with this object.
  const Variants& variants(const std::function<void(int op)>& begin);
  /// Are its named changes run beside the replays, so that `work_on` must come before them?
  bool beside(size_t boundary) const { return !plan_.apart[boundary]; }
  void work_on(size_t boundary);
  /// Named changes in the whole program.
  int64_t named() const;
  /// Those started so far, by deviation number.
  const std::vector<FaultHypothesis>& started() const { return hypotheses_; }

  /// What explains `value`, the candidate's at `row`.
  std::vector<Finding> at(const OpResult& row, const BoundaryEvent& event, const at::Tensor& value,
                          const ValuesBefore& before);
  /// Arithmetic below the cast that explains it: to be asked for where nothing else does.
  std::vector<Finding> arithmetic(const OpResult& row, const BoundaryEvent& event, const at::Tensor& value,
                                  const ValuesBefore& before);
  /// The event as it would be if the reference's program had the change that `finding`, one of this row's, tells of.
  /// nullopt: it is not one change that could be put in.
  std::optional<BoundaryEvent> under(const OpResult& row, const BoundaryEvent& event, const at::Tensor& value,
                                     const ValuesBefore& before, const Finding& finding);
  /// A value that is explained elsewhere: remembered alone.
  void pass(const OpResult& row, const BoundaryEvent& event, const at::Tensor& value, const ValuesBefore& before);
  /// Called before arithmetic is searched: what searches of earlier values had must have been heard then.
  std::function<void(size_t boundary)> catch_up;
  void hear(const Aside& elsewhere) { search_.hear(elsewhere.arithmetic_work, elsewhere.arithmetic_found); }
  /// What was said and spent since this was asked last.
  Aside aside();
  /// The reference's value at a boundary that is not compared.
  void remember(size_t boundary, const at::Tensor& value);
  /// What was projected on and what was not tried; `all`: the sum over all values.
  void report(const Aside& all, Coverage& coverage, std::vector<std::string>& warnings) const;

 private:
  std::vector<Deviation> start(int op);
  std::vector<Finding> searched(const OpResult& row, const BoundaryEvent& event, const at::Tensor& value,
                                const ValuesBefore& before, Sought sought);
  /// What ran since the values before; nullopt: the program cannot go on from one of them.
  std::optional<Stretch> stretch_before(const OpResult& row, const BoundaryEvent& event, const at::Tensor& value,
                                        const ValuesBefore& before) const;
  std::optional<Finding> in_another_order(const OpResult& row, const BoundaryEvent& event,
                                          const at::Tensor& value) const;
  std::optional<Finding> stale(const OpResult& row, const BoundaryEvent& event, const at::Tensor& value,
                               const std::set<std::string>& inputs);
  int final_op(size_t boundary) const;
  std::string name(size_t boundary) const;

  const Dump& dump_;
  const Program& program_;
  const std::vector<Segment>& segments_;
  const Thresholds& limits_;
  const Catalogue catalogue_;
  const VariantPlan plan_;
  ArithmeticSearch search_;
  Hypotheses arithmetic_;  // tried at the last row that was asked for
  std::vector<FaultHypothesis> hypotheses_;
  StaleRegistry stale_;
  Variants variants_;
  Aside aside_;
};

}  // namespace parity
