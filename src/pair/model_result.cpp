#include "pair/model_result.hpp"

#include <algorithm>
#include <optional>

#include "pair/limits.hpp"
#include "pair/links.hpp"

namespace parity {
namespace {

bool is_result(const Boundary& boundary) {
  return boundary.comparable && (boundary.path.empty() || boundary.path.starts_with("["));
}

// The only one left of this size, if it lies behind all that is paired.
std::optional<size_t> only_one_left(const PortPairing& pairing, const std::vector<CandidateTensor>& candidate,
                                    const Value& value) {
  std::optional<size_t> only;
  for (const size_t c : pairing.unmatched) {
    if (candidate[c].of_op || c10::multiply_integers(candidate[c].shape) != value.elements()) continue;
    if (only) return std::nullopt;
    only = c;
  }
  const bool behind = only && std::all_of(pairing.pairs.begin(), pairing.pairs.end(),
                                          [&](const PortPair& pair) { return pair.candidate < *only; });
  const bool fits =
      behind && (!pairing.pairs.empty() || candidate[*only].shape == value.shape || *only + 1 == candidate.size());
  return fits ? only : std::nullopt;
}

Layout layout_of(const NamedTensor* reference, const NamedTensor* candidate, const std::vector<int64_t>& shape) {
  if (reference != nullptr && candidate != nullptr)
    if (auto layout = likeliest_layout(*reference, *candidate)) return *layout;
  Layout in_order;
  in_order.reshape = shape;
  return in_order;
}

}  // namespace

void pair_result(PortPairing& pairing, const Program& reference, const std::vector<CandidateTensor>& candidate,
                 const Prints& here, const Prints& there) {
  std::vector<bool> covered = reference.covered_by(pairing.marked);
  for (size_t result = 0; result < reference.boundaries.size(); ++result) {
    if (!is_result(reference.boundaries[result]) || covered[result]) continue;
    const Value& value = reference.boundaries[result].value;
    const auto found = only_one_left(pairing, candidate, value);
    if (!found) continue;
    size_t first = result;
    for (size_t b = 0; b < result; ++b)  // a module that returns it
      if (reference.boundaries[b].value.id == value.id && reference.boundaries[b].comparable)
        first = std::min(first, b);
    Layout layout;
    if (candidate[*found].shape != value.shape) layout = layout_of(here.find(result), there.find(*found), value.shape);
    pairing.add(
        {first, *found, layout, kPairLimits.trial.by_size, "the only tensor left of its size, behind all others", 1});
    covered = reference.covered_by(pairing.marked);
  }
}

void take_for_result(PortPairing& pairing, const Program& reference, const Prints& here) {
  const auto result = reference.find("");
  const auto last = std::ranges::max_element(pairing.pairs, {}, &PortPair::candidate);
  if (!result || last == pairing.pairs.end() || !last->evidence.starts_with("content")) return;
  const NamedTensor *paired = here.find(last->boundary), *returned = here.find(*result);
  if (!paired || !returned || paired->shape != returned->shape || paired->print.readings.empty() ||
      reference.covered_by(pairing.marked)[*result] ||
      content_distance(paired->print.readings[0], returned->print.readings[0]) > kPairLimits.evidence.least_distance)
    return;
  PortPair pair = *last;
  pairing.drop_if([&](const PortPair& one) { return one.boundary == pair.boundary; });
  pair.boundary = *result;
  pairing.add(std::move(pair));
}

}  // namespace parity
