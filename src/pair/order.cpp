#include "pair/order.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "trace/flow.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

int64_t elements(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

// Values that are views of all of another one, taken back to that one; memory written in place is left alone.
class WholeViews {
 public:
  explicit WholeViews(const Program& program) : flow_(analyse_flow(program)) {
    for (const Leaf& leaf : program.leaves) elements_[leaf.value.id] = elements(leaf.value.shape);
    for (size_t i = 0; i < program.ops.size(); ++i)
      for (const auto& output : program.ops[i].outputs)
        if (output && elements_.emplace(output->id, elements(output->shape)).second)
          base_[output->id] = flow_.ops[i].base;
  }

  int64_t origin(int64_t id) const {
    if (flow_.written_from(id, 0)) return id;
    for (auto found = base_.find(id); found != base_.end() && found->second >= 0; found = base_.find(id)) {
      const auto whole = elements_.find(found->second);
      if (whole == elements_.end() || whole->second != elements_.at(id)) return id;
      id = found->second;
    }
    return id;
  }

  bool rewritten(int64_t id) const { return flow_.written_from(id, 0); }

 private:
  Flow flow_;
  std::unordered_map<int64_t, int64_t> base_, elements_;
};

}  // namespace

PairingOrder::PairingOrder(const Program& reference, const std::vector<std::pair<size_t, size_t>>& known)
    : after_(reference.boundaries.size(), -1),
      before_(reference.boundaries.size(), std::numeric_limits<int64_t>::max()) {
  const size_t n = reference.boundaries.size();
  const auto direct = reference.marked_ancestors(std::vector<bool>(n, true));
  std::vector<int64_t> counterpart(n, -1);
  for (const auto& [b, c] : known) counterpart[b] = static_cast<int64_t>(c);
  size_t dependent = 0, contradictions = 0;
  for (size_t b = 0; b < n; ++b) {
    for (const size_t a : direct[b]) after_[b] = std::max(after_[b], counterpart[a] >= 0 ? counterpart[a] : after_[a]);
    if (counterpart[b] < 0 || after_[b] < 0) continue;
    ++dependent;
    contradictions += after_[b] > counterpart[b];
  }
  for (size_t b = n; b-- > 0;)
    for (const size_t a : direct[b])
      before_[a] = std::min(before_[a], counterpart[b] >= 0 ? counterpart[b] : before_[b]);
  ordered_ = static_cast<double>(contradictions) <= kPairLimits.program.contradictions * static_cast<double>(dependent);
  find_known_values(reference, counterpart);
}

void PairingOrder::find_known_values(const Program& reference, const std::vector<int64_t>& counterpart) {
  const WholeViews views(reference);
  std::set<int64_t> known;
  const auto origin = [&](size_t b) { return views.origin(reference.boundaries[b].value.id); };
  for (size_t b = 0; b < counterpart.size(); ++b)
    if (counterpart[b] >= 0 && !views.rewritten(origin(b))) known.insert(origin(b));
  known_value_.assign(counterpart.size(), false);
  for (size_t b = 0; b < counterpart.size(); ++b)
    known_value_[b] = counterpart[b] < 0 && is_op_path(reference.boundaries[b].path) && known.contains(origin(b));
}

std::vector<size_t> before_their_causes(const Program& reference, const std::vector<std::pair<size_t, size_t>>& pairs) {
  const size_t n = reference.boundaries.size();
  const auto direct = reference.marked_ancestors(std::vector<bool>(n, true));
  std::vector<int64_t> counterpart(n, -1), latest(n, -1);  // latest: counterpart of all that b is computed from
  for (const auto& [b, c] : pairs) counterpart[b] = static_cast<int64_t>(c);
  const auto most_lie_behind = [&](size_t boundary) {
    std::vector<bool> seen(n, false);
    std::vector<size_t> left = direct[boundary];
    size_t causes = 0, behind = 0;
    while (!left.empty()) {
      const size_t a = left.back();
      left.pop_back();
      if (seen[a]) continue;
      seen[a] = true;
      causes += counterpart[a] >= 0, behind += counterpart[a] > counterpart[boundary];
      left.insert(left.end(), direct[a].begin(), direct[a].end());
    }
    return behind > 1 && 2 * behind > causes;  // one alone may itself have been recorded late
  };
  std::vector<size_t> early;
  size_t dependent = 0;
  for (size_t b = 0; b < n; ++b) {
    for (const size_t a : direct[b]) latest[b] = std::max({latest[b], counterpart[a], latest[a]});
    if (counterpart[b] < 0 || latest[b] < 0) continue;
    ++dependent;
    if (latest[b] > counterpart[b] && most_lie_behind(b)) early.push_back(b);
  }
  const auto most = kPairLimits.program.contradictions * static_cast<double>(dependent);
  return early.size() == 1 || static_cast<double>(early.size()) <= most ? early : std::vector<size_t>{};
}

std::vector<size_t> behind_their_effects(const Program& reference,
                                         const std::vector<std::pair<size_t, size_t>>& pairs) {
  std::map<size_t, size_t> counterpart(pairs.begin(), pairs.end());
  std::vector<bool> paired(reference.boundaries.size(), false);
  for (const auto& [b, c] : pairs) paired[b] = true;
  const auto causes = reference.marked_ancestors(paired);
  std::map<size_t, std::pair<int, int>> effects;  // by boundary: all, those that lie before it
  for (const auto& [b, c] : pairs)
    for (const size_t a : causes[b]) ++effects[a].first, effects[a].second += c < counterpart.at(a);
  std::vector<size_t> late;
  for (const auto& [b, found] : effects)
    if (2 * found.second > found.first) late.push_back(b);
  const auto most = kPairLimits.program.contradictions * static_cast<double>(effects.size());
  return late.size() == 1 || static_cast<double>(late.size()) <= most ? late : std::vector<size_t>{};
}

}  // namespace parity
