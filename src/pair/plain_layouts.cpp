#include "pair/plain_layouts.hpp"

#include <fmt/format.h>

#include "measure/measure.hpp"
#include "pair/limits.hpp"
#include "pair/readings.hpp"

namespace parity {
namespace {

double distance(const at::Tensor& mine, const at::Tensor& theirs) {
  return measure_sums(mine, theirs.reshape(mine.sizes())).rel_l2.value_or(1);
}

bool is_plain(const PortPair& pair, const Dump& dump, const Value& value, const CandidateTensor& tensor) {
  if (pair.layout.permutation.empty() || value.key.empty() || longer_axes(value.shape) != longer_axes(tensor.shape))
    return false;
  const at::Tensor mine = stored_value(dump, value), theirs = tensor.load();
  const double as_it_is = distance(mine, theirs);
  if (as_it_is > kPairLimits.content.same) return false;
  const auto otherwise = pair.layout.as_shape(theirs, mine.sizes());
  return !otherwise || as_it_is < kPairLimits.evidence.apart * distance(mine, *otherwise);
}

}  // namespace

void prefer_plain_layouts(PortPairing& pairing, const Dump& dump, const Program& reference,
                          const std::vector<CandidateTensor>& candidate) {
  size_t permuted = 0;
  const PortPair* first = nullptr;
  for (PortPair& pair : pairing.pairs) {
    const CandidateTensor& tensor = candidate[pair.candidate];
    const Value& value = reference.boundaries[pair.boundary].value;
    if (is_plain(pair, dump, value, tensor)) {
      pair.layout = {};
      if (value.shape != tensor.shape) pair.layout.reshape = value.shape;
    }
    if (pair.layout.permutation.empty() || !pair.evidence.starts_with("content")) continue;
    if (permuted++ == 0) first = &pair;
  }
  if (first != nullptr)
    pairing.notes.push_back(
        fmt::format("{} of the candidate's own names are read with their axes in another order, by content ({} as {}): "
                    "--save-map lists them",
                    permuted, candidate[first->candidate].path, first->layout.text()));
}

}  // namespace parity
