// How the differences of a pair are spread, and where the largest are: for people who look at one op. Knows no limit.
#pragma once
#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "core/result.hpp"

namespace parity {

/// The histogram of core/result.hpp. `measured`: measure(reference, candidate). None where the reference has no norm to
/// relate a difference to. Complex tensors count as pairs of reals, as everywhere in Stats.
std::optional<Histogram> difference_histogram(const at::Tensor& reference, const at::Tensor& candidate,
                                              const Stats& measured);

/// The elements that differ most, largest |d| first, of equal ones the earlier first; before them those where one side
/// alone is NaN or Inf. Never an equal pair. Of a complex element the part that differs.
std::vector<Element> worst_elements(const at::Tensor& reference, const at::Tensor& candidate, size_t most = 8);

}  // namespace parity
