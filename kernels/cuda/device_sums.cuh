// The pass that sums, as the host starts it.
#pragma once
#include "kernels/cuda/compare.hpp"
#include "kernels/cuda/interval.hpp"

namespace parity::kernels::cuda {

using Count = unsigned long long;  // atomicAdd has no int64_t

/// On the device: a list for each band, of which `capacity` are kept and `counts` say how many there were.
struct Kept {
  double* values[kBands] = {};
  Count* counts = nullptr;
  int64_t capacity = 0;
};

/// Starts all sums over `pair` on the current device; `bands` (there, or null: none) and what lies in them. `out` is
/// there, too.
void start_sums(const Pair& pair, const Bands* bands, const Kept& kept, int blocks, PairResult* out);

/// Starts: how many of what is kept for each band lie in each bin of its interval: kBands times kBins numbers, which
/// are zero before.
void start_counting(const Bands* bands, const Kept& kept, unsigned* counts);

}  // namespace parity::kernels::cuda
