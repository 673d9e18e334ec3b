// The digits of |d| that ranks are found by (doubles >= 0 are ordered like their bits): the same code on a GPU and on
// the CPU.
#pragma once
#include "kernels/cuda/pair_step.hpp"

namespace parity::kernels::cuda {

constexpr int kDigitBits = 13, kBins = 1 << kDigitBits;
constexpr int kDigits = 5;  // the first is the exponent, four more hold the 52 bits of the mantissa

/// The differences whose leading `digits` digits are `prefix`.
struct Prefix {
  uint64_t value = 0;
  int digits = 0;
};

/// The leading digits of a magnitude, as one number.
PARITY_HOST_DEVICE inline uint64_t leading_digits(uint64_t magnitude, int digits) {
  return digits == 0 ? 0 : magnitude >> ((kDigits - digits) * kDigitBits);
}

/// Does |d| begin with the prefix? Never that of a pair that is not finite.
PARITY_HOST_DEVICE inline bool begins_with(double distance, const Prefix& prefix) {
  const uint64_t magnitude = bits_of(distance);
  return magnitude <= kInfinity64 && leading_digits(magnitude, prefix.digits) == prefix.value;
}

/// The digit after the prefix: the bin of a histogram.
PARITY_HOST_DEVICE inline int next_digit(double distance, const Prefix& prefix) {
  return static_cast<int>(leading_digits(bits_of(distance), prefix.digits + 1) & (kBins - 1));
}

/// |d| of pair `i`, a NaN where it is not of two finite numbers.
PARITY_HOST_DEVICE inline double distance_at(const Pair& pair, int64_t i) {
  return distance(decoded(raw_bits(pair.reference, pair.reference_type, i), format_of(pair.reference_type)),
                  decoded(raw_bits(pair.candidate, pair.candidate_type, i), format_of(pair.candidate_type)));
}

}  // namespace parity::kernels::cuda
