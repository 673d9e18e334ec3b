// Bands of |d| in which percentiles will lie, from a sorted sample: the pass that sums counts what lies below them and
// keeps what lies inside. The same code on a GPU and on the CPU.
#pragma once
#include <cmath>

#include "kernels/cuda/element.hpp"

namespace parity::kernels::cuda {

constexpr int kBands = 2;

/// The leading 32 bits of a finite |d|: ordered as the numbers are.
PARITY_HOST_DEVICE inline uint32_t key_of(double magnitude) { return static_cast<uint32_t>(bits_of(magnitude) >> 32); }

/// The |d| whose keys are `low` … `low + width`.
struct Band {
  uint32_t low = uint32_t{1} << 31, width = 0;  // as it stands: no number has that key
  double tie = -1;                              // is counted and not kept: differences of bf16 have few values
};
struct Bands {
  Band band[kBands];
};

/// Elements of a sample: of 2^17, a 95th percentile lies within 0.3 % of all on either side (five standard deviations).
constexpr int64_t kSample = int64_t{1} << 17;

/// The `k`-th place that is looked at of n > kSample: one from each of kSample stretches, scattered, as data have
/// periods.
PARITY_HOST_DEVICE inline int64_t sampled_place(int64_t k, int64_t n) {
  const auto begin = [&](int64_t stretch) { return stretch * (n / kSample) + stretch * (n % kSample) / kSample; };
  uint64_t hash = static_cast<uint64_t>(k) * 0x9e3779b97f4a7c15ULL;  // splitmix64's last steps
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9ULL;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebULL;
  return begin(k) + static_cast<int64_t>((hash >> 32) % static_cast<uint64_t>(begin(k + 1) - begin(k)));
}

/// The key of a sampled |d|; what is not finite comes last.
PARITY_HOST_DEVICE inline uint32_t sample_key(double magnitude) {
  return bits_of(magnitude) < kInfinity64 ? key_of(magnitude) : ~uint32_t{0};
}

/// Where the quantile of all lies but once in two million times, from the keys of `count` of them, sorted. A wrong
/// guess costs time only. The tie is the key's first number: differences of narrow floats have no more bits than a key.
PARITY_HOST_DEVICE inline Band band_around(const uint32_t* keys, int64_t count, double quantile) {
  if (count < 1) return {};
  const double place = quantile * static_cast<double>(count - 1),
               margin = 1 + 5 * sqrt(quantile * (1 - quantile) * static_cast<double>(count));
  const auto first = static_cast<int64_t>(place - margin), last = static_cast<int64_t>(place + margin) + 1;
  const uint32_t low = first < 0 ? 0 : keys[first],
                 high = last < count ? keys[last] : static_cast<uint32_t>(kInfinity64 >> 32) - 1;
  return {low, high - low, double_of(uint64_t{keys[static_cast<int64_t>(place + .5)]} << 32)};
}

}  // namespace parity::kernels::cuda
