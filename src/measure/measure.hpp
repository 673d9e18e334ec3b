// Measuring a pair of tensors. Knows no limit.
#pragma once
#include <ATen/ATen.h>

#include "core/stats.hpp"

namespace parity {

/// One pass over the data plus an exact selection for the percentiles; the same digits for any thread count.
/// The shapes must be equal (throws Error); dtypes may differ: ULP and bitwise equality are then taken after rounding
/// the candidate to the reference's dtype only if that is exact, otherwise they are nullopt.
Stats measure(const at::Tensor& reference, const at::Tensor& candidate);

/// What one pass of sums gives of it, at a fifth of the time: no percentiles, no worst element, nothing about
/// constants.
Stats measure_sums(const at::Tensor& reference, const at::Tensor& candidate);

/// Relative L2 errors of both sides against an oracle, their ratio and correlation (core/stats.hpp).
OracleStats measure_against_oracle(const at::Tensor& oracle, const at::Tensor& reference, const at::Tensor& candidate);

}  // namespace parity
