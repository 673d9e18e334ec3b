#include "pair/port_pairing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.hpp"
#include "pair/layout_advice.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

using Key = std::pair<std::string, int>;

// The ops that ran directly in each module call: kinds in order.
std::map<Key, std::vector<std::string>> ops_by_call(const Program& program) {
  std::map<Key, std::vector<std::string>> kinds;
  for (const Op& op : program.ops) kinds[{module_of(op.path), op.call}].push_back(op.name);
  return kinds;
}

class Pairer {
 public:
  Pairer(const Program& reference, const std::vector<CandidateTensor>& candidate, const Program* program,
         const NameMap* map)
      : reference_(reference), candidate_(candidate), map_(map) {
    for (size_t c = 0; c < candidate.size(); ++c) by_key_.emplace(Key{candidate[c].path, candidate[c].call}, c);
    if (program != nullptr) {
      const auto here = ops_by_call(reference), there = ops_by_call(*program);
      for (const auto& [call, kinds] : here) {
        auto found = there.find(call);
        if (found == there.end()) found = there.find({call.first, 0});  // a call that was divided (calls/chunks.hpp)
        if (found != there.end() && found->second == kinds) same_ops_.insert(call);
      }
    }
    find_other_results();
  }

  PortPairing run() {
    PortPairing pairing;
    pairing.marked.assign(reference_.boundaries.size(), false);
    std::map<size_t, size_t> taken;  // candidate -> the boundary that has it
    for (size_t b = 0; b < reference_.boundaries.size(); ++b) {
      const Boundary& boundary = reference_.boundaries[b];
      if (!boundary.comparable) continue;
      auto pair = find(b);
      if (!pair) continue;
      const auto [owner, first] = taken.try_emplace(pair->candidate, b);
      if (!first && !pair->layout.split) {
        check_alias(*pair, owner->second);
        continue;
      }
      pairing.marked[b] = true;
      pairing.pairs.push_back(std::move(*pair));
    }
    for (size_t c = 0; c < candidate_.size(); ++c)
      if (!taken.contains(c)) pairing.unmatched.push_back(c);
    if (map_ != nullptr) check_map();
    return pairing;
  }

 private:
  // What an engine names after a module need not be the module's first result ("resnet"), but, say, a pooled value
  // ("resnet[1]"): it is the one result that has its shape when the first has not and the engine names none so.
  void find_other_results() {
    std::map<size_t, std::vector<size_t>> fitting;  // first result -> others of the shape of its namesake
    for (size_t b = 0; b < reference_.boundaries.size(); ++b) {
      const Boundary& boundary = reference_.boundaries[b];
      const std::string& path = boundary.path;
      if (!boundary.comparable || !path.ends_with(']') || is_op_path(path)) continue;
      const Key module{module_of(path), boundary.call};
      const auto first = reference_.index.find(module);
      const auto namesake = by_key_.find(module);
      if (first == reference_.index.end() || namesake == by_key_.end() || by_key_.contains({path, boundary.call}))
        continue;
      const auto& shape = candidate_[namesake->second].shape;
      if (shape == boundary.value.shape && shape != reference_.boundaries[first->second].value.shape)
        fitting[first->second].push_back(b);
    }
    for (const auto& [first, others] : fitting)
      if (others.size() == 1) instead_.emplace(first, others[0]), instead_of_.emplace(others[0], first);
  }

  std::optional<PortPair> find(size_t b) const {
    const Boundary& boundary = reference_.boundaries[b];
    if (map_ != nullptr)
      if (const auto target = map_->find(boundary.path, boundary.call)) {
        const auto found = by_key_.find({target->candidate, target->call});
        if (found == by_key_.end()) return std::nullopt;
        PortPair pair{b, found->second, as_mapped(target->layout, b, found->second), 1,
                      fmt::format("map line {}", target->line)};
        pair.laid_out = !target->layout.as_it_is();
        return pair;
      }
    if (instead_.contains(b)) return std::nullopt;
    if (const auto first = instead_of_.find(b); first != instead_of_.end()) {
      const Boundary& named = reference_.boundaries[first->second];
      return PortPair{b, by_key_.at({named.path, named.call}), {}, 1, "path, the result of this shape"};
    }
    const auto found = by_key_.find({boundary.path, boundary.call});
    if (found == by_key_.end()) return std::nullopt;
    const bool op_result = is_op_path(boundary.path);
    if (op_result && candidate_[found->second].of_op && !same_ops_.contains({module_of(boundary.path), boundary.call}))
      return std::nullopt;
    return PortPair{b, found->second, {}, 1, "path"};
  }

  // A rule without steps says which tensor it is: batch and tokens as one axis are the same elements in the same order.
  Layout as_mapped(Layout layout, size_t b, size_t c) const {
    const auto &reference = reference_.boundaries[b].value.shape, &candidate = candidate_[c].shape;
    if (layout.as_it_is() && reference != candidate && differ_by_merged_axes(reference, candidate))
      layout.reshape = reference;
    return layout;
  }

  // One value under two names may have one counterpart, two values may not.
  void check_alias(const PortPair& pair, size_t owner) const {
    const Boundary &one = reference_.boundaries[owner], &other = reference_.boundaries[pair.boundary];
    if (pair.evidence == "path" || one.value.id == other.value.id) return;
    throw Error(
        fmt::format("the map's {} gives the candidate's '{}' to '{}', which '{}' has already; give each its own, or "
                    "split(axis,i,n)",
                    pair.evidence.substr(4), candidate_[pair.candidate].path, other.path, one.path));
  }

  void check_map() const {
    std::vector<std::string> paths;
    for (const Leaf& leaf : reference_.leaves)
      for (const std::string& name : leaf.names)
        if (name.starts_with("weights/")) paths.push_back(name.substr(8));
    std::vector<NameMap::Name> names = weights_and_owners(paths);
    const bool only_weights = !names.empty();
    for (const Boundary& b : reference_.boundaries) names.push_back({b.path, b.call});
    map_->require_all_used(names);
    size_t named = 0, used = 0;
    for (const Boundary& b : reference_.boundaries)
      if (const auto target = map_->find(b.path, b.call))
        ++named, used += by_key_.contains({target->candidate, target->call});
    if (used == 0 && !(named == 0 && only_weights) && !names.empty())
      throw Error("the map gives no candidate tensor that the candidate has; see: parity-check inspect CAND");
  }

  const Program& reference_;
  const std::vector<CandidateTensor>& candidate_;
  const NameMap* map_;
  std::map<Key, size_t> by_key_;
  std::set<Key> same_ops_;                         // module calls in which both sides ran the same ops
  std::map<size_t, size_t> instead_, instead_of_;  // first result -> the one that its namesake is, and back
};

}  // namespace

void PortPairing::add(PortPair pair) {
  marked[pair.boundary] = true;
  std::erase(unmatched, pair.candidate);
  pairs.insert(std::ranges::lower_bound(pairs, pair.boundary, {}, &PortPair::boundary), std::move(pair));
}

std::vector<PortPair> PortPairing::drop_if(const std::function<bool(const PortPair& pair)>& unwanted) {
  std::vector<PortPair> dropped;
  std::erase_if(pairs, [&](const PortPair& pair) {
    if (!unwanted(pair)) return false;
    dropped.push_back(pair);
    return true;
  });
  for (const PortPair& pair : dropped) {
    marked[pair.boundary] = false;
    unmatched.push_back(pair.candidate);
  }
  std::ranges::sort(unmatched);
  return dropped;
}

PortPairing pair_by_name(const Program& reference, const std::vector<CandidateTensor>& candidate,
                         const Program* candidate_program, const NameMap* map) {
  return Pairer(reference, candidate, candidate_program, map).run();
}

}  // namespace parity
