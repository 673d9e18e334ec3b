#include "compare/port_pairing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compare/auto_pairing.hpp"
#include "compare/pairing_order.hpp"
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
    paths = weights_and_owners(paths);
    const bool only_weights = !paths.empty();
    for (const Boundary& b : reference_.boundaries) paths.push_back(b.path);
    map_->require_all_used(paths);
    size_t named = 0, used = 0;
    for (const Boundary& b : reference_.boundaries)
      if (const auto target = map_->find(b.path)) ++named, used += by_key_.contains({target->candidate, b.call});
    if (used == 0 && !(named == 0 && only_weights) && !paths.empty())
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

struct Prints {
  std::vector<size_t> index;  // boundary or candidate tensor
  std::vector<NamedTensor> tensors;
};

// The reference's own values, looked at once and not kept.
Prints reference_prints(const Dump& dump, const Program& program) {
  Prints prints;
  replay(dump, program, {}, [&](size_t b, const at::Tensor& value) -> std::optional<at::Tensor> {
    const Boundary& boundary = program.boundaries[b];
    if (boundary.comparable) {
      prints.index.push_back(b);
      prints.tensors.push_back(
          {boundary.path, boundary.call, boundary.value.dtype, boundary.value.shape, fingerprint_of(value)});
    }
    return std::nullopt;
  });
  return prints;
}

Prints candidate_prints(const std::vector<CandidateTensor>& candidate) {
  Prints prints;
  for (size_t c = 0; c < candidate.size(); ++c) {
    if (candidate[c].of_op) continue;
    prints.index.push_back(c);
    prints.tensors.push_back({candidate[c].path, candidate[c].call, candidate[c].dtype, candidate[c].shape,
                              fingerprint_of(candidate[c].load())});
  }
  return prints;
}

size_t position_of(const Prints& prints, size_t index) {
  return std::lower_bound(prints.index.begin(), prints.index.end(), index) - prints.index.begin();
}

bool is_op(const NamedTensor& tensor) { return tensor.path.find('/') != std::string::npos; }

bool content_differs(const NamedTensor& a, const NamedTensor& b) {
  if (a.shape != b.shape || a.print.readings.empty() || b.print.readings.empty()) return true;
  return content_distance(a.print.readings[0], b.print.readings[0]) > .3;
}

// Equal names that lie crosswise in time and hold other numbers are other tensors: diffusers' Wan calls norm2 what the
// original calls norm3. Names alone that cross, or numbers alone that differ (a fault), stay paired.
void drop_crossed_names(PortPairing& pairing, const Prints& here, const Prints& there) {
  std::vector<size_t> last(pairing.pairs.size());  // largest candidate index so far
  size_t largest = 0;
  for (size_t i = 0; i < pairing.pairs.size(); ++i) last[i] = largest = std::max(largest, pairing.pairs[i].candidate);
  size_t least = SIZE_MAX;
  std::vector<PortPair> kept;
  for (size_t i = pairing.pairs.size(); i-- > 0;) {
    const PortPair& pair = pairing.pairs[i];
    const bool crosses = (i > 0 && last[i - 1] > pair.candidate) || least < pair.candidate;
    least = std::min(least, pair.candidate);
    const size_t r = position_of(here, pair.boundary), c = position_of(there, pair.candidate);
    const bool known = r < here.index.size() && here.index[r] == pair.boundary && c < there.index.size() &&
                       there.index[c] == pair.candidate;
    if (crosses && pair.evidence == "path" && known && content_differs(here.tensors[r], there.tensors[c])) {
      pairing.marked[pair.boundary] = false;
      pairing.unmatched.push_back(pair.candidate);
    } else {
      kept.push_back(pair);
    }
  }
  std::reverse(kept.begin(), kept.end());
  pairing.pairs = std::move(kept);
}

constexpr double kSure = .8;  // confidence from which a pair says where others can lie

// Pairs what is left, among the reference's boundaries that `eligible` names.
void pair_by_content(PortPairing& pairing, const Program& reference, const Prints& all, const Prints& there,
                     const std::function<bool(const NamedTensor&)>& eligible) {
  Prints here;
  for (size_t i = 0; i < all.index.size(); ++i)
    if (eligible(all.tensors[i]) || pairing.marked[all.index[i]]) {
      here.index.push_back(all.index[i]);
      here.tensors.push_back(all.tensors[i]);
    }
  std::vector<std::pair<size_t, size_t>> anchors;
  for (const PortPair& pair : pairing.pairs) {
    const size_t r = position_of(here, pair.boundary), c = position_of(there, pair.candidate);
    if (r < here.index.size() && here.index[r] == pair.boundary && c < there.index.size() &&
        there.index[c] == pair.candidate)
      anchors.emplace_back(r, c);
  }
  std::vector<std::pair<size_t, size_t>> known;
  for (const PortPair& pair : pairing.pairs)
    if (pair.confidence >= kSure) known.emplace_back(pair.boundary, pair.candidate);
  const PairingOrder order(reference, known);
  const auto possible = [&](size_t r, size_t c) { return order.possible(here.index[r], there.index[c]); };
  const AutoPairing found = pair_automatically(here.tensors, there.tensors, anchors, possible);
  pairing.notes = found.notes;
  std::set<size_t> taken;
  for (const AutoPair& pair : found.pairs) {
    const size_t b = here.index[pair.reference];
    const NamedTensor &mine = here.tensors[pair.reference], &other = there.tensors[pair.candidate];
    // An op's result in another width is no counterpart: the port's rounded copy has none here.
    if (pairing.marked[b] || (is_op(mine) && mine.dtype != other.dtype)) continue;
    pairing.marked[b] = true;
    taken.insert(there.index[pair.candidate]);
    pairing.pairs.push_back({b, there.index[pair.candidate], pair.layout, pair.confidence, pair.evidence});
  }
  std::erase_if(pairing.unmatched, [&](size_t c) { return taken.contains(c); });
  std::sort(pairing.pairs.begin(), pairing.pairs.end(),
            [](const PortPair& a, const PortPair& b) { return a.boundary < b.boundary; });
}

// Identity modules (dropout at inference) give their input another name: bitwise the same as a paired tensor recorded
// beside them, they are accounted for.
void name_repeats(PortPairing& pairing, const std::vector<CandidateTensor>& candidate) {
  constexpr size_t kBeside = 3;
  std::erase_if(pairing.unmatched, [&](size_t c) {
    for (const PortPair& pair : pairing.pairs) {
      const size_t p = pair.candidate, apart = p > c ? p - c : c - p;
      if (apart > kBeside || candidate[p].shape != candidate[c].shape || candidate[p].dtype != candidate[c].dtype ||
          !at::equal(candidate[p].load(), candidate[c].load()))
        continue;
      pairing.notes.push_back(fmt::format("{} repeats {} bit by bit", candidate[c].path, candidate[p].path));
      return true;
    }
    return false;
  });
}

}  // namespace

PortPairing pair_recordings(const Dump& dump, const Program& reference, const std::vector<CandidateTensor>& candidate,
                            const Program* candidate_program, const NameMap* map) {
  PortPairing pairing = pair_by_name(reference, candidate, candidate_program, map);
  const bool left_over =
      std::any_of(pairing.unmatched.begin(), pairing.unmatched.end(), [&](size_t c) { return !candidate[c].of_op; });
  if (!left_over) return pairing;
  const Prints here = reference_prints(dump, reference), there = candidate_prints(candidate);
  drop_crossed_names(pairing, here, there);
  // Modules first: a value that a module returns and an op passes on is the module's.
  pair_by_content(pairing, reference, here, there, [](const NamedTensor& t) { return !is_op(t); });
  if (!pairing.unmatched.empty())
    pair_by_content(pairing, reference, here, there, [](const NamedTensor&) { return true; });
  name_repeats(pairing, candidate);
  return pairing;
}

}  // namespace parity
