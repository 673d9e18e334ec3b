#include "pair/model_result.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "pair/limits.hpp"
#include "pair/links.hpp"

namespace parity {
namespace {

bool is_result(const Boundary& boundary) { return boundary.comparable && is_model_result(boundary.path); }

// Of one size: results that nothing covers, and tensors that nothing has. As many of each (one of each call, in a loop
// over tokens) are paired in their order.
struct Left {
  std::vector<size_t> results, tensors;
};

std::map<int64_t, Left> left_by_size(const PortPairing& pairing, const Program& reference,
                                     const std::vector<CandidateTensor>& candidate) {
  std::map<int64_t, Left> left;
  const std::vector<bool> covered = reference.covered_by(pairing.marked);
  std::set<int64_t> values;  // one may be a result twice
  for (size_t b = 0; b < reference.boundaries.size(); ++b)
    if (const Value& value = reference.boundaries[b].value;
        is_result(reference.boundaries[b]) && !covered[b] && values.insert(value.id).second)
      left[value.elements()].results.push_back(b);
  for (const size_t c : pairing.unmatched)
    if (!candidate[c].of_op) left[c10::multiply_integers(candidate[c].shape)].tensors.push_back(c);
  return left;
}

// A result may be written twice: under its module's name and under its own.
void leave_one_of_each(std::vector<size_t>& tensors, const Prints& there) {
  const auto is_again = [&](size_t c, size_t before) {
    const NamedTensor *one = there.find(before), *other = there.find(c);
    return one != nullptr && other != nullptr && one->shape == other->shape && !one->print.readings.empty() &&
           one->print.rms == other->print.rms &&  // not scaled on the way
           content_distance(one->print.readings[0], other->print.readings[0]) <= kPairLimits.evidence.least_distance;
  };
  std::vector<size_t> left;
  for (const size_t c : tensors)
    if (std::ranges::none_of(left, [&](size_t before) { return is_again(c, before); })) left.push_back(c);
  tensors = std::move(left);
}

// Behind all that is paired before the result, and before all that is paired behind it.
bool in_order(const PortPairing& pairing, size_t result, size_t tensor) {
  return std::ranges::all_of(
      pairing.pairs, [&](const PortPair& pair) { return (pair.boundary < result) == (pair.candidate < tensor); });
}

// A module that returns the result, or the result itself.
size_t first_of(const Value& value, const Program& reference, size_t result) {
  for (size_t b = 0; b < result; ++b)
    if (reference.boundaries[b].value.id == value.id && reference.boundaries[b].comparable) return b;
  return result;
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
  const bool alone = pairing.pairs.empty();
  for (auto& [size, left] : left_by_size(pairing, reference, candidate)) {
    if (left.results.size() < left.tensors.size()) leave_one_of_each(left.tensors, there);
    if (left.results.size() != left.tensors.size()) continue;
    for (size_t i = 0; i < left.results.size(); ++i) {
      const size_t result = left.results[i], c = left.tensors[i];
      const Value& value = reference.boundaries[result].value;
      const bool fits = !alone || candidate[c].shape == value.shape || left.tensors.back() + 1 == candidate.size();
      const size_t first = first_of(value, reference, result);
      if (!fits || !(in_order(pairing, result, c) || in_order(pairing, first, c))) continue;
      Layout layout;
      if (candidate[c].shape != value.shape) layout = layout_of(here.find(result), there.find(c), value.shape);
      pairing.add({first, c, layout, kPairLimits.trial.by_size,
                   left.results.size() == 1 ? "the only tensor left of its size, behind all others"
                                            : "the only tensors left of their size, in their order",
                   1});
    }
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
