#include "pair/without_pairs.hpp"

#include <algorithm>
#include <memory>
#include <set>

namespace parity {
namespace {

// What of the part's values, all unpaired, has that shape.
std::vector<size_t> window(const ForcedPairs& forced, const Program& reference, const ProgramPart& part,
                           at::IntArrayRef shape) {
  std::set<int64_t> made;
  for (const size_t op : part.ops)
    for (const auto& output : reference.ops[op].outputs)
      if (output) made.insert(output->id);
  for (size_t p = 0; p < forced.count(); ++p)
    if (forced.paired(p) != nullptr) made.erase(reference.boundaries[p].value.id);
  std::vector<size_t> found;
  for (size_t w = 0; w < forced.count(); ++w) {
    const Boundary& boundary = reference.boundaries[w];
    if (boundary.comparable && shape == boundary.value.shape && at::isFloatingType(boundary.value.dtype) &&
        made.erase(boundary.value.id) > 0)
      found.push_back(w);
  }
  return found;
}

}  // namespace

WithoutPairs without_pairs(ForcedPairs& forced, const Program& reference, const std::vector<size_t>& group,
                           const std::vector<size_t>& next, const at::Tensor& sought) {
  WithoutPairs found{forced.part_to(next, forced.marked_without(group)), {}, {}, {}};
  ProgramPart part = *found.part.part;
  if (sought.defined()) {
    const std::vector<size_t> around = window(forced, reference, part, sought.sizes());
    part.boundaries.insert(part.boundaries.end(), around.begin(), around.end());
  }
  part.boundaries.insert(part.boundaries.end(), group.begin(), group.end());
  std::sort(part.boundaries.begin(), part.boundaries.end());
  found.part.part = std::make_shared<ProgramPart>(std::move(part));
  const auto look = [&](size_t at, const at::Tensor& value) {
    if (forced.paired(at) == nullptr)
      found.near[at] = ForcedPairs::distance(value, sought);
    else
      found.values[at] = value.clone();
  };
  found.off = forced.off_on(found.part, {}, look, group);
  return found;
}

}  // namespace parity
