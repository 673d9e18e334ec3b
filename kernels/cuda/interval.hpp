// Intervals of |d| by its bits (doubles >= 0 are ordered like them), cut into bins for a histogram: the same code on a
// GPU and on the CPU.
#pragma once
#include "kernels/cuda/bands.hpp"

namespace parity::kernels::cuda {

constexpr int kBinBits = 13, kBins = 1 << kBinBits;

/// `bins` <= kBins bins of 2^shift consecutive bit patterns, from `low` on.
struct Interval {
  uint64_t low = 0;
  int shift = 63 - kBinBits;
  uint64_t bins = kBins;  // as it stands: all numbers >= 0
};

/// The bin of |d|, -1: outside, or no finite number.
PARITY_HOST_DEVICE inline int bin_of(double magnitude, const Interval& interval) {
  const uint64_t bits = bits_of(magnitude), bin = (bits - interval.low) >> interval.shift;
  return bits >= kInfinity64 || bits < interval.low || bin >= interval.bins ? -1 : static_cast<int>(bin);
}

/// `patterns` > 0 of them from `low` on, in as many bins as there may be.
PARITY_HOST_DEVICE inline Interval interval_from(uint64_t low, uint64_t patterns) {
  int shift = 0;
  while ((patterns - 1) >> shift >= kBins) ++shift;
  return {low, shift, ((patterns - 1) >> shift) + 1};
}

PARITY_HOST_DEVICE inline Interval interval_of(const Band& band) {
  return interval_from(uint64_t{band.low} << 32, (uint64_t{band.width} + 1) << 32);
}

/// One bin of an interval.
inline Interval narrowed(const Interval& interval, int bin) {
  return interval_from(interval.low + (static_cast<uint64_t>(bin) << interval.shift), uint64_t{1} << interval.shift);
}

}  // namespace parity::kernels::cuda
