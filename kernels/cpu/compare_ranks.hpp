// Picking numbers out of arrays by their size, for percentiles. Vectorised with Highway, the instruction set chosen at
// run time.
#pragma once
#include <cstdint>

#include "kernels/cpu/compare_block.hpp"

namespace parity::kernels {

/// Writes to `out` (room for n + kBlockSpill) the values of `a` (n) that are greater than `low`, in their order, and
/// returns how many they are.
int64_t block_above(const double* a, int64_t n, double low, double* out);

/// An open interval of numbers and one value `tie` inside that is only counted (NaN: none).
struct BlockInterval {
  double low = 0, high = 0, tie = 0;
};
struct BlockFound {
  int64_t above = 0, tied = 0, inside = 0;  // how many are > low; equal tie; were written
};
/// Writes to `inside` (room for n + kBlockSpill) the values of `a` (n) in the interval that are not its tie.
BlockFound block_between(const double* a, int64_t n, const BlockInterval& interval, double* inside);

}  // namespace parity::kernels
