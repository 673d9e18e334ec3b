#include "compare/port_pairing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compare/auto_pairing.hpp"
#include "core/error.hpp"
#include "trace/replay.hpp"

namespace parity {
namespace {

using Key = std::pair<std::string, int>;

// The ops that ran directly in each module call: kinds in order.
std::map<Key, std::vector<std::string>> ops_by_call(const Program& program) {
  std::map<Key, std::vector<std::string>> kinds;
  for (const Op& op : program.ops) kinds[{op.path.substr(0, op.path.find('/')), op.call}].push_back(op.name);
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
      for (const auto& [call, kinds] : here)
        if (const auto found = there.find(call); found != there.end() && found->second == kinds) same_ops_.insert(call);
    }
  }

  PortPairing run() {
    PortPairing pairing;
    pairing.marked.assign(reference_.boundaries.size(), false);
    std::set<size_t> taken;
    for (size_t b = 0; b < reference_.boundaries.size(); ++b) {
      const Boundary& boundary = reference_.boundaries[b];
      if (!boundary.comparable) continue;
      auto pair = find(b);
      if (!pair || (pair->layout.split ? false : !taken.insert(pair->candidate).second)) continue;
      if (pair->layout.split) taken.insert(pair->candidate);
      pairing.marked[b] = true;
      pairing.pairs.push_back(std::move(*pair));
    }
    for (size_t c = 0; c < candidate_.size(); ++c)
      if (!taken.contains(c)) pairing.unmatched.push_back(c);
    if (map_ != nullptr) check_map();
    return pairing;
  }

 private:
  std::optional<PortPair> find(size_t b) const {
    const Boundary& boundary = reference_.boundaries[b];
    if (map_ != nullptr)
      if (const auto target = map_->find(boundary.path)) {
        const auto found = by_key_.find({target->candidate, boundary.call});
        if (found == by_key_.end()) return std::nullopt;
        return PortPair{b, found->second, target->layout, 1, fmt::format("map line {}", target->line)};
      }
    const auto found = by_key_.find({boundary.path, boundary.call});
    if (found == by_key_.end()) return std::nullopt;
    const bool op_result = boundary.path.find('/') != std::string::npos;
    if (op_result && candidate_[found->second].of_op &&
        !same_ops_.contains({boundary.path.substr(0, boundary.path.find('/')), boundary.call}))
      return std::nullopt;
    return PortPair{b, found->second, {}, 1, "path"};
  }

  void check_map() const {
    std::vector<std::string> paths;
    for (const Boundary& b : reference_.boundaries) paths.push_back(b.path);
    map_->require_all_used(paths);
    size_t used = 0;
    for (const Boundary& b : reference_.boundaries)
      if (const auto target = map_->find(b.path)) used += by_key_.contains({target->candidate, b.call});
    if (used == 0 && !paths.empty())
      throw Error("the map gives no candidate tensor that the candidate has; see: parity-check inspect CAND");
  }

  const Program& reference_;
  const std::vector<CandidateTensor>& candidate_;
  const NameMap* map_;
  std::map<Key, size_t> by_key_;
  std::set<Key> same_ops_;  // module calls in which both sides ran the same ops
};

}  // namespace

PortPairing pair_by_name(const Program& reference, const std::vector<CandidateTensor>& candidate,
                         const Program* candidate_program, const NameMap* map) {
  return Pairer(reference, candidate, candidate_program, map).run();
}

namespace {

// The reference's own values, looked at once and not kept.
std::vector<NamedTensor> fingerprints(const Dump& dump, const Program& program, std::vector<size_t>& boundaries) {
  std::vector<NamedTensor> list;
  replay(dump, program, {}, [&](size_t b, const at::Tensor& value) -> std::optional<at::Tensor> {
    const Boundary& boundary = program.boundaries[b];
    if (boundary.comparable) {
      boundaries.push_back(b);
      list.push_back({boundary.path, boundary.call, boundary.value.dtype, boundary.value.shape, fingerprint_of(value)});
    }
    return std::nullopt;
  });
  return list;
}

}  // namespace

PortPairing pair_recordings(const Dump& dump, const Program& reference, const std::vector<CandidateTensor>& candidate,
                            const Program* candidate_program, const NameMap* map) {
  PortPairing pairing = pair_by_name(reference, candidate, candidate_program, map);
  const bool left_over =
      std::any_of(pairing.unmatched.begin(), pairing.unmatched.end(), [&](size_t c) { return !candidate[c].of_op; });
  if (!left_over) return pairing;
  std::vector<size_t> boundaries;
  const std::vector<NamedTensor> here = fingerprints(dump, reference, boundaries);
  std::vector<NamedTensor> there;
  std::vector<size_t> tensors;
  std::map<size_t, size_t> position;  // candidate tensor -> index in `there`
  for (size_t c = 0; c < candidate.size(); ++c) {
    if (candidate[c].of_op) continue;
    position[c] = there.size();
    tensors.push_back(c);
    there.push_back({candidate[c].path, candidate[c].call, candidate[c].dtype, candidate[c].shape,
                     fingerprint_of(candidate[c].load())});
  }
  std::vector<std::pair<size_t, size_t>> anchors;
  for (const PortPair& pair : pairing.pairs) {
    const auto at = std::lower_bound(boundaries.begin(), boundaries.end(), pair.boundary);
    if (position.contains(pair.candidate) && at != boundaries.end() && *at == pair.boundary)
      anchors.emplace_back(at - boundaries.begin(), position[pair.candidate]);
  }
  const AutoPairing found = pair_automatically(here, there, anchors);
  pairing.notes = found.notes;
  std::set<size_t> taken;
  for (const AutoPair& pair : found.pairs) {
    const size_t b = boundaries[pair.reference];
    if (pairing.marked[b]) continue;
    pairing.marked[b] = true;
    taken.insert(tensors[pair.candidate]);
    pairing.pairs.push_back({b, tensors[pair.candidate], pair.layout, pair.confidence, pair.evidence});
  }
  std::erase_if(pairing.unmatched, [&](size_t c) { return taken.contains(c); });
  std::sort(pairing.pairs.begin(), pairing.pairs.end(),
            [](const PortPair& a, const PortPair& b) { return a.boundary < b.boundary; });
  return pairing;
}

}  // namespace parity
