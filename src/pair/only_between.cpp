#include "pair/only_between.hpp"

#include <map>
#include <set>
#include <vector>

#include "pair/limits.hpp"
#include "pair/links.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

// Under whatever pair: then it is not what is wrong. A block without its residual gives what the layer before gave.
bool port_has(const TrialScene& scene, size_t b) {
  const size_t here = scene.here.position_of(b);
  for (size_t there = 0; there < scene.there.tensors.size(); ++there) {
    const auto link = compare_content(scene.here.tensors, scene.there.tensors, here, there);
    if (link && link->distance <= kPairLimits.content.same) return true;
  }
  return false;
}

std::optional<size_t> only_possible(const TrialScene& scene, const TrialPlaces& places, size_t b) {
  std::optional<size_t> only;
  for (const size_t c : scene.pairing.unmatched) {
    if (scene.candidate[c].shape != scene.reference.boundaries[b].value.shape || !places.order().possible(b, c))
      continue;
    if (only) return std::nullopt;
    only = c;
  }
  return only;
}

}  // namespace

std::optional<PortPair> only_one_between(const TrialScene& scene, const TrialPlaces& places) {
  for (const size_t end : places.troubled()) {
    if (!places.paired(end)) continue;
    std::map<size_t, std::vector<size_t>> results;  // by candidate tensor
    std::set<int64_t> seen;                         // a value once, under its first name
    for (const size_t b : places.unpaired_before(end)) {
      const Boundary& boundary = scene.reference.boundaries[b];
      if (!is_op_path(boundary.path) && seen.insert(boundary.value.id).second)
        if (const auto c = only_possible(scene, places, b); c && !port_has(scene, b)) results[*c].push_back(b);
    }
    for (const auto& [c, of] : results)
      if (of.size() == 1)
        return PortPair{of[0], c, {}, kPairLimits.trial.by_size, "order and shape: the only one between its neighbours",
                        1};
  }
  return std::nullopt;
}

}  // namespace parity
