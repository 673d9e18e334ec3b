#include "jobs/stretch_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/dtype_kind.hpp"
#include "core/error.hpp"
#include "diagnose/findings.hpp"
#include "jobs/likely_changes.hpp"
#include "judge/naming.hpp"

namespace parity {
namespace {

// At first: the likeliest come first, and one of them may explain the value. Each batch replays the stretch anew, so
// the next is twice as large.
constexpr size_t kBesideEachOther = 8, kMostBesideEachOther = 64;

class StretchSearch {
 public:
  StretchSearch(const Dump& dump, const Program& program, const Catalogue& catalogue, const VariantPlan& plan,
                const Thresholds& limits, const Stretch& stretch, Sought sought)
      : dump_(dump),
        program_(program),
        catalogue_(catalogue),
        plan_(plan),
        limits_(limits),
        stretch_(stretch),
        part_(std::make_shared<ProgramPart>(ProgramPart{stretch.ops, {stretch.boundary}, {}})),
        half_(is_half(stretch.computed[kRecorded].scalar_type())),
        matching_(matching_work(program.boundaries[stretch.boundary].value)),
        left_(sought == Sought::gross ? INFINITY : plan.allowed[stretch.boundary]),
        sought_(sought) {
    after_.assign(program.ops.size(), 0);
    for (size_t k = stretch.ops.size(); k-- > 0;) after_[stretch.ops[k]] = whole_ += plan.work[stretch.ops[k]];
  }

  Searched run() {
    VariantCoverage& c = searched_.coverage;
    c.from = stretch_.from;
    c.to = stretch_.to;
    std::vector<StretchChange> changes = catalogued();
    c.named = static_cast<int64_t>(changes.size());
    double all = 0;
    for (const StretchChange& change : changes) all += change.work;
    if (all > left_ && stretch_.value.is_floating_point()) estimate(changes);
    run_fused();
    run_changes(changes);
    c.untried = std::max<int64_t>(0, c.named - c.estimated - run_unestimated_);
    if (c.untried > 0 && c.why.empty()) c.why = "another explains the difference";
    searched_.directions = c.estimated + c.run;
    return std::move(searched_);
  }

 private:
  StretchChange to_end(FaultHypothesis h, size_t op) const { return {std::move(h), after_[op] + matching_}; }

  bool is_sought(const FaultHypothesis& h) const {
    return sought_ == Sought::all || h.gross == (sought_ == Sought::gross);
  }

  // Every named change as a short stretch would have it run, the nearest to the end first. The fused kernels, valid
  // each, become one change: all of them.
  std::vector<StretchChange> catalogued() {
    std::vector<StretchChange> changes;
    for (auto op = stretch_.ops.rbegin(); op != stretch_.ops.rend(); ++op)
      for (FaultHypothesis& h : catalogue_.at(static_cast<int>(*op)))
        if (h.valid && h.fault == kFusedKernel) {
          if (fused_) h.deviation.rewrites.merge(fused_->change.deviation.rewrites);
          fused_ = to_end(std::move(h), *op);
        } else if (!h.valid && is_sought(h)) {
          changes.push_back(to_end(std::move(h), *op));
        }
    return changes;
  }

  // Part of this stretch's null distribution, as each alone is of a short one's.
  void run_fused() {
    if (!fused_ || static_cast<double>(kExact + 1) * whole_ + fused_->work > left_) return;
    Variants variants(DeviationSource([&](int op) {
      return op == fused_->change.deviation.rewrites.begin()->first ? std::vector{fused_->change.deviation}
                                                                    : std::vector<Deviation>();
    }));
    variants.most_bytes = plan_.bytes;
    left_ -= static_cast<double>(kExact + 1) * whole_ + fused_->work;
    replay_in_step(
        dump_, program_, lanes({&*fused_}),
        [&](const BoundaryEvent& event) -> Replacements {
          if (!event.deviating.empty()) fused_value_ = event.deviating.front().value;
          return {};
        },
        variants);
  }

  // What was found by a batch; the fused kernels' value stands beside its changes.
  BoundaryEvent seen(const BoundaryEvent& event, std::vector<FaultHypothesis>& started) const {
    BoundaryEvent all{event.boundary, stretch_.computed, event.deviating};
    if (!fused_value_.defined()) return all;
    all.deviating.push_back({started.size(), fused_value_});
    started.push_back(fused_->change);
    return all;
  }

  // Logic faults that point elsewhere go; casts stay behind the others as they were. In half width the fp64 replay runs
  // the faults: over a long stretch no single rounding of the port could be predicted.
  void estimate(std::vector<StretchChange>& changes) {
    std::vector<StretchChange> logic;
    std::vector<Deviation> deviations;
    double changed = 0;
    for (const size_t op : stretch_.ops) {
      std::vector<FaultHypothesis> as_run = catalogue_.at(static_cast<int>(op));
      const auto left_out = [this](const FaultHypothesis& h) {
        return h.gate == Gate::dtype_path || h.valid || !is_sought(h);
      };
      std::erase_if(as_run, left_out);
      std::vector<FaultHypothesis> unrounded = catalogue_.unrounded_at(static_cast<int>(op));
      std::erase_if(unrounded, left_out);
      for (size_t i = 0; i < unrounded.size(); ++i) {
        changed += plan_.work[op];
        deviations.push_back(unrounded[i].deviation);
        logic.push_back(to_end(std::move((half_ ? unrounded : as_run)[i]), op));
      }
    }
    const double work = first_order_work(whole_, changed);
    if (work > left_ || logic.empty()) return;
    try {
      LikelyChanges likely = likely_changes(dump_, program_, stretch_, std::move(logic), deviations);
      left_ -= work;
      searched_.coverage.estimated = likely.estimated;
      for (StretchChange& change : changes)
        if (change.change.gate == Gate::dtype_path) likely.changes.push_back(std::move(change));
      changes = std::move(likely.changes);
    } catch (const Error& error) {
      searched_.coverage.why = fmt::format("they have no first order ({})", error.what());
    }
  }

  void run_changes(const std::vector<StretchChange>& changes) {
    size_t beside = kBesideEachOther;
    for (size_t next = 0; next < changes.size(); beside = std::min(2 * beside, kMostBesideEachOther)) {
      std::vector<const StretchChange*> batch;
      double work = static_cast<double>(kExact + 1) * whole_;
      for (; next < changes.size() && batch.size() < at_once(beside) && work + changes[next].work <= left_; ++next) {
        work += changes[next].work;
        batch.push_back(&changes[next]);
      }
      if (batch.empty()) {
        if (searched_.coverage.why.empty()) searched_.coverage.why = "budget of work";
        return;
      }
      left_ -= work;
      run_batch(batch);
      const Finding* best = best_finding(searched_.findings, limits_);
      if (best != nullptr && best->explained() > limits_.whole.value) return;
    }
  }

  // Beside each other within the memory allowed; three values of the largest size each.
  size_t at_once(size_t wanted) const {
    int64_t largest = 1;
    for (const size_t op : stretch_.ops)
      for (const auto& output : program_.ops[op].outputs)
        if (output) largest = std::max(largest, 8 * output->elements());  // in fp64
    return std::clamp<size_t>(static_cast<size_t>(plan_.bytes / (3 * largest)), 1, wanted);
  }

  void run_batch(const std::vector<const StretchChange*>& batch) {
    std::map<int, std::vector<const StretchChange*>> by_op;
    for (const StretchChange* change : batch) by_op[change->change.deviation.rewrites.begin()->first].push_back(change);
    std::vector<FaultHypothesis> started;   // by deviation number
    std::vector<const StretchChange*> ran;  // likewise
    Variants variants(DeviationSource([&](int op) {
      std::vector<Deviation> deviations;
      for (const StretchChange* change : by_op[op]) {
        deviations.push_back(change->change.deviation);
        started.push_back(change->change);
        ran.push_back(change);
      }
      return deviations;
    }));
    variants.most_bytes = plan_.bytes;
    variants.give_up = [&](size_t number) {
      ran[number] = nullptr;
      searched_.coverage.why = "budget of memory";
    };
    replay_in_step(
        dump_, program_, lanes(batch),
        [&](const BoundaryEvent& event) -> Replacements {
          add(match_hypotheses(seen(event, started), stretch_.value, started, stretch_.final_op));
          return {};
        },
        variants);
    for (const StretchChange* change : ran) {
      searched_.coverage.run += change != nullptr;
      run_unestimated_ += change != nullptr && !change->estimated && change->along == 0;
    }
  }

  // Some are found in every batch: a gain.
  void add(std::vector<Finding> found) {
    for (Finding& f : found)
      if (std::none_of(searched_.findings.begin(), searched_.findings.end(),
                       [&](const Finding& other) { return same_change(other, f); }))
        searched_.findings.push_back(std::move(f));
  }

  // As many of the job's replays as the changes deviate from; they come first there (LaneIndex).
  std::vector<ReplayOptions> lanes(const std::vector<const StretchChange*>& batch) const {
    ReplayOptions part;
    part.part = part_;
    part.given = stretch_.given;
    std::vector<ReplayOptions> lanes(kExact + 1, part);
    lanes[kOracle].precision = Precision::fp64;
    lanes[kExact].arithmetic = Arithmetic::exact;
    size_t last = kOracle;
    for (const StretchChange* c : batch) last = std::max(last, c->change.deviation.lane);
    lanes.resize(last + 1);
    return lanes;
  }

  const Dump& dump_;
  const Program& program_;
  const Catalogue& catalogue_;
  const VariantPlan& plan_;
  const Thresholds& limits_;
  const Stretch& stretch_;
  const std::shared_ptr<const ProgramPart> part_;
  const bool half_;
  const double matching_;  // work of one match
  double left_;            // work
  const Sought sought_;
  double whole_ = 0;           // of one replay of the stretch
  std::vector<double> after_;  // by op: from it to the end
  int64_t run_unestimated_ = 0;
  std::optional<StretchChange> fused_;
  at::Tensor fused_value_;  // at the end; undefined: not run
  Searched searched_;
};

}  // namespace

Searched search_stretch(const Dump& dump, const Program& program, const Catalogue& catalogue, const VariantPlan& plan,
                        const Thresholds& limits, const Stretch& stretch, Sought sought) {
  return StretchSearch(dump, program, catalogue, plan, limits, stretch, sought).run();
}

}  // namespace parity
