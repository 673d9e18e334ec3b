#include "jobs/variant_plan.hpp"

#include <algorithm>
#include <numeric>

#include "core/memory.hpp"
#include "pair/segments.hpp"

namespace parity {
namespace {

int64_t bytes_made_by(const Op& op) {
  int64_t bytes = 0;
  for (const auto& output : op.outputs)
    if (output) bytes += 8 * output->elements();  // in fp64
  return bytes;
}

// What a compared value's named changes would take.
struct Cost {
  size_t boundary = 0;
  double all = 0;       // each run from its op to the compared value
  double searched = 0;  // the same to first order, a few of them run
  double stretch = 0;   // one replay of what lies before the value
  int64_t bytes = 0;    // at once, all of them beside each other
};

class Planner {
 public:
  Planner(const ProgramIndex& program, const std::vector<Segment>& segments, const Catalogue& catalogue)
      : program_(program), segments_(segments), catalogue_(catalogue) {
    plan_.work = work_of_ops(program.program());
    plan_.apart.assign(segments.size(), false);
    plan_.allowed.assign(segments.size(), 0);
  }

  VariantPlan run(size_t lanes, const VariantBudget& budget) {
    plan_.bytes = budget.memory();
    const double replays =
        static_cast<double>(lanes) * std::accumulate(plan_.work.begin(), plan_.work.end(), double{0});
    const double allowed = std::max(budget.replays * replays, budget.replays > 0 ? budget.least : 0);
    std::vector<Cost> costs;
    for (size_t b = 0; b < segments_.size(); ++b)
      if (!segments_[b].ops.empty()) costs.push_back(cost_of(b));
    double in_step = 0, stretches = 0;
    for (const Cost& cost : costs) in_step += cost.all;
    // The longest stretches are what is saved most on.
    std::stable_sort(costs.begin(), costs.end(),
                     [](const Cost& a, const Cost& b) { return a.all - a.searched > b.all - b.searched; });
    double left = in_step;
    for (const Cost& cost : costs) {
      const bool saves = left > allowed && (cost.all > cost.searched || budget.replays <= 0);
      if (!saves && cost.bytes <= plan_.bytes) continue;
      plan_.apart[cost.boundary] = true;
      in_step -= cost.all;
      left += std::min(cost.all, cost.searched) - cost.all;
      stretches += cost.stretch;
    }
    const double rest = std::max<double>(0, allowed - in_step);
    for (const Cost& cost : costs)
      if (plan_.apart[cost.boundary])
        plan_.allowed[cost.boundary] = rest * cost.stretch / std::max<double>(stretches, 1);
    mark_worth();
    return std::move(plan_);
  }

 private:
  Cost cost_of(size_t b) const {
    Cost cost;
    cost.boundary = b;
    double changed = 0;
    int64_t largest = 0;
    const double matching = matching_work(program_.program().boundaries[b].value);
    const std::vector<size_t>& ops = segments_[b].ops;
    for (size_t k = ops.size(); k-- > 0;) {
      const auto changes = static_cast<double>(catalogue_.count(static_cast<int>(ops[k])));
      cost.stretch += plan_.work[ops[k]];
      changed += changes * plan_.work[ops[k]];
      cost.all += changes * (cost.stretch + matching);
      largest = std::max(largest, bytes_made_by(program_.op(static_cast<int>(ops[k]))));
      cost.bytes += static_cast<int64_t>(changes) * largest;
    }
    cost.searched = first_order_work(cost.stretch, changed) + 4 * (cost.stretch + matching);
    return cost;
  }

  // Also ops between those of a segment that belong to none: views that are written through, memory not yet filled.
  void mark_worth() {
    std::vector<bool> within(program_.size(), false), apart(program_.size(), false);
    for (size_t b = 0; b < segments_.size(); ++b) {
      const std::vector<size_t>& ops = segments_[b].ops;
      if (ops.empty()) continue;
      if (plan_.apart[b])
        for (const size_t op : ops) apart[op] = true;
      else
        std::fill(within.begin() + static_cast<int64_t>(ops.front()),
                  within.begin() + static_cast<int64_t>(ops.back()) + 1, true);
    }
    plan_.worth = within;
    for (size_t op = 0; op < apart.size(); ++op) plan_.worth[op] = within[op] && !apart[op];
    for (size_t b = 0; b < segments_.size(); ++b)
      if (!plan_.apart[b])
        for (const size_t op : segments_[b].ops) plan_.worth[op] = true;
  }

  const ProgramIndex& program_;
  const std::vector<Segment>& segments_;
  const Catalogue& catalogue_;
  VariantPlan plan_;
};

}  // namespace

int64_t VariantBudget::memory() const {
  if (bytes > 0) return bytes;
  return static_cast<int64_t>(std::min<uint64_t>(free_memory(), INT64_MAX) / 2);
}

// Forwards, once more with a graph, and backwards along the difference and the sketches; the plain op beside its
// changes. All in fp32, at half the cost of fp64.
double first_order_work(double stretch, double changed_ops) { return ((4 + kSketches) * stretch + changed_ops) / 2; }

double matching_work(const Value& value) {
  return kSearch.match + kSearch.match_element * static_cast<double>(value.elements());
}

VariantPlan plan_variants(const ProgramIndex& program, const std::vector<Segment>& segments, const Catalogue& catalogue,
                          size_t lanes, const VariantBudget& budget) {
  return Planner(program, segments, catalogue).run(lanes, budget);
}

}  // namespace parity
