#include "trace/plan.hpp"

#include <algorithm>

namespace parity {
namespace {

// Walks backwards from `begin` with the set of values whose state is still owed.
class Preparation {
 public:
  Preparation(const Program& program, const Flow& flow, const std::unordered_set<int64_t>& given)
      : program_(program), flow_(flow), given_(given) {}

  void need(int64_t id) {
    if (given_.contains(id) || !needed_.insert(id).second) return;
    ++roots_[flow_.root.at(id)];
    if (const auto base = flow_.leaf_base.find(id); base != flow_.leaf_base.end()) need(base->second);
  }

  Step decide(int index) {
    const OpFlow& op = flow_.ops[index];
    const bool writes = std::any_of(op.writes.begin(), op.writes.end(), [&](int64_t id) {
      const auto owed = roots_.find(flow_.root.at(id));
      return owed != roots_.end() && owed->second > 0;
    });
    const bool makes = std::any_of(op.fresh.begin(), op.fresh.end(), [&](int64_t id) { return needed_.contains(id); });
    if (!writes && !makes) return Step::skip;
    const bool load = !writes && op.base < 0 && stored(index);
    for (const int64_t id : op.fresh) forget(id);
    if (!load)
      for (const int64_t id : op.reads) need(id);
    return load ? Step::load : Step::run;
  }

 private:
  bool stored(int index) const {
    const auto& outputs = program_.ops[index].outputs;
    return std::all_of(outputs.begin(), outputs.end(), [&](const std::optional<Value>& output) {
      return !output || !needed_.contains(output->id) || !output->key.empty();
    });
  }

  void forget(int64_t id) {
    if (needed_.erase(id) > 0) --roots_[flow_.root.at(id)];
  }

  const Program& program_;
  const Flow& flow_;
  const std::unordered_set<int64_t>& given_;
  std::unordered_set<int64_t> needed_;
  std::unordered_map<int64_t, int> roots_;  // memory -> how many owed values lie in it
};

// How often each value is read by what the plan runs and visits.
void count_uses(const Program& program, const Flow& flow, Plan& plan) {
  for (size_t i = 0; i < plan.steps.size(); ++i)
    if (plan.steps[i] == Step::run)
      for (const int64_t id : flow.ops[i].reads) ++plan.uses[id];
  for (size_t b = plan.first_boundary; b < plan.end_boundary; ++b)
    if (plan.visits.empty() || plan.visits[b]) ++plan.uses[program.boundaries[b].value.id];
  for (const auto& [leaf, base] : flow.leaf_base)
    if (plan.uses.contains(leaf)) ++plan.uses[base];
}

}  // namespace

Plan make_plan(const Program& program, const Flow& flow, int begin, int end, const std::unordered_set<int64_t>& given) {
  Plan plan;
  plan.steps.assign(end, Step::skip);
  const auto after = [](int position, const Boundary& boundary) { return position < boundary.position; };
  const auto& boundaries = program.boundaries;
  if (begin > 0)
    plan.first_boundary = std::upper_bound(boundaries.begin(), boundaries.end(), begin, after) - boundaries.begin();
  plan.end_boundary = std::upper_bound(boundaries.begin(), boundaries.end(), end, after) - boundaries.begin();

  Preparation preparation(program, flow, given);
  for (int i = begin; i < end; ++i) {
    plan.steps[i] = Step::run;
    for (const int64_t id : flow.ops[i].reads) preparation.need(id);
  }
  for (size_t b = plan.first_boundary; b < plan.end_boundary; ++b) preparation.need(boundaries[b].value.id);
  for (int i = begin - 1; i >= 0; --i) plan.steps[i] = preparation.decide(i);

  count_uses(program, flow, plan);
  return plan;
}

Plan plan_of_part(const Program& program, const Flow& flow, const ProgramPart& part) {
  Plan plan;
  size_t end = part.ops.empty() ? 0 : part.ops.back() + 1;
  for (const size_t b : part.boundaries) end = std::max<size_t>(end, program.boundaries[b].position);
  plan.steps.assign(end, Step::skip);
  for (const size_t op : part.ops) plan.steps[op] = Step::run;
  plan.visits.assign(program.boundaries.size(), false);
  for (const size_t b : part.boundaries) plan.visits[b] = true;
  plan.end_boundary = part.boundaries.empty() ? 0 : part.boundaries.back() + 1;
  count_uses(program, flow, plan);
  for (const int64_t id : part.kept) ++plan.uses[id];
  return plan;
}

}  // namespace parity
