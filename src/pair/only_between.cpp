#include "pair/only_between.hpp"

#include <algorithm>
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
  return std::ranges::any_of(scene.there.tensors,
                             [&](const NamedTensor& theirs) { return same_content(*scene.here.find(b), theirs); });
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
  for (const Trouble& trouble : places.troubled()) {
    if (!places.paired(trouble.end)) continue;
    std::map<size_t, std::vector<size_t>> results;  // by candidate tensor
    std::set<int64_t> seen;                         // a value once, under its first name
    for (const size_t b : trouble.before) {
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
