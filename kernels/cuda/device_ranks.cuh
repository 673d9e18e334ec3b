// Samples, histograms and gathering of |d| on a device, as the host starts them.
#pragma once
#include <vector>

#include "kernels/cuda/compare.hpp"
#include "kernels/cuda/interval.hpp"

namespace parity::kernels::cuda {

/// Where differences come from: a pair, or a list of them.
struct Differences {
  Pair pair;                     // if `list` is null
  const double* list = nullptr;  // on the device
  int64_t n = 0;

  PARITY_HOST_DEVICE double operator[](int64_t i) const { return list != nullptr ? list[i] : distance_at(pair, i); }
};

/// Starts: all differences of the pair ascending into `out`, NaN last.
void start_sorting(const Pair& pair, double* out);

/// Starts: the bands around the quantiles, from a sample of the pair's differences; `pair.n` > kSample.
void start_bands(const Pair& pair, const std::vector<double>& quantiles, Bands* out);

/// How many differences lie in each bin.
std::vector<int64_t> counts_in(const Interval& interval, const Differences& differences);

/// Those of the interval, `count` of them, in any order.
std::vector<double> gathered(const Interval& interval, const Differences& differences, int64_t count);

}  // namespace parity::kernels::cuda
