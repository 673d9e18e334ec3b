// Do two tensors hold the same numbers, in whichever layout and after which rounding? Every answer "yes" was checked on
// all elements.
#pragma once
#include <ATen/ATen.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "pair/fingerprint.hpp"
#include "pair/name_map.hpp"

namespace parity {

using Slice = std::array<int64_t, 3>;  // axis, begin, length

/// Read flat in these orders both tensors agree: at most one of the two has its axes permuted.
struct Order {
  std::vector<int64_t> candidate, reference;  // permutations of all axes; empty: as they are
  bool as_is() const { return candidate.empty() && reference.empty(); }
};

/// Every order under which a tensor of shape `candidate` may hold one of shape `reference`: the permutations that give
/// its axes (those of length 1 do not count), then, or when the axes themselves differ (a convolution as a matrix), all
/// permutations of the side that has more axes. The identity comes first. Empty when the sizes differ.
std::vector<Order> orders_between(at::IntArrayRef candidate, at::IntArrayRef reference);

/// As a map file says it; `slice` of the candidate's full shape is taken first.
Layout layout_of(const Order& order, const std::optional<Slice>& slice, at::IntArrayRef candidate,
                 at::IntArrayRef reference);

/// How a tensor that holds the reference's numbers was rounded.
struct Rounding {
  bool kept = false;       // equal after at most the one rounding that its dtype asks for
  std::string narrower;    // "bf16": equal after rounding to that, although its dtype could hold more
  bool truncated = false;  // towards zero instead of to nearest
  bool found() const { return kept || !narrower.empty(); }
};

/// Same shape; all elements are compared.
Rounding rounding_between(const at::Tensor& reference, const at::Tensor& candidate);

struct Content {
  Order order;
  Rounding rounding;
};

/// The order under which `candidate` holds `reference`, tried by samples first; `preferred` before all others.
std::optional<Content> find_content(const at::Tensor& reference, const at::Tensor& candidate,
                                    const Order* preferred = nullptr);

/// Elements at `places` (flat, row-major, of the permuted tensor) as fp64.
std::vector<double> sample(const at::Tensor& tensor, const std::vector<int64_t>& permutation,
                           const std::vector<int64_t>& places);

/// `most` places spread over `count` elements without a period (multiples of the golden ratio).
std::vector<int64_t> sample_places(int64_t count, int64_t most);

/// Candidate as the reference's shape and order (a copy where strides do not allow a view).
at::Tensor in_reference_order(const at::Tensor& candidate, const Order& order, at::IntArrayRef reference);

at::Tensor sliced(const at::Tensor& tensor, const std::optional<Slice>& slice);
std::vector<int64_t> sliced(std::vector<int64_t> shape, const std::optional<Slice>& slice);

}  // namespace parity
