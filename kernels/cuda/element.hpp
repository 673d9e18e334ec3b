// Stored floats as exact doubles and back, by their bits: the same code on a GPU and on the CPU. Includes nothing of
// CUDA.
#pragma once
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define PARITY_HOST_DEVICE __host__ __device__
#else
#define PARITY_HOST_DEVICE
#endif

namespace parity::kernels::cuda {

enum class Element : uint8_t { fp64, fp32, fp16, bf16, fp8_e4m3fn, fp8_e5m2 };

PARITY_HOST_DEVICE constexpr int64_t bytes_of(Element e) {
  return e == Element::fp64 ? 8 : e == Element::fp32 ? 4 : e == Element::fp16 || e == Element::bf16 ? 2 : 1;
}

/// How the bits of a float are divided: sign, exponent, mantissa.
struct Format {
  int exponent_bits, mantissa_bits;
  bool has_infinity;  // false: e4m3fn, whose one NaN of either sign has all bits set and which has numbers up to there
};

PARITY_HOST_DEVICE constexpr Format format_of(Element e) {
  switch (e) {
    case Element::fp64:
      return {11, 52, true};
    case Element::fp32:
      return {8, 23, true};
    case Element::fp16:
      return {5, 10, true};
    case Element::bf16:
      return {8, 7, true};
    case Element::fp8_e4m3fn:
      return {4, 3, false};
    default:
      return {5, 2, true};
  }
}

constexpr int kBias64 = 1023, kMantissa64 = 52;
constexpr uint64_t kMagnitude64 = ~uint64_t{0} >> 1, kInfinity64 = uint64_t{0x7ff} << kMantissa64;

PARITY_HOST_DEVICE inline uint64_t bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
PARITY_HOST_DEVICE inline double double_of(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/// 2^power as a double, for powers of normal numbers.
PARITY_HOST_DEVICE inline double power_of_two(int power) {
  return double_of(static_cast<uint64_t>(power + kBias64) << kMantissa64);
}

PARITY_HOST_DEVICE constexpr uint64_t magnitude_mask(Format f) {
  return (uint64_t{1} << (f.exponent_bits + f.mantissa_bits)) - 1;
}
PARITY_HOST_DEVICE constexpr int bias_of(Format f) { return (1 << (f.exponent_bits - 1)) - 1; }

/// The number that `bits` are in format `f`, exactly; NaN and infinities as such.
PARITY_HOST_DEVICE inline double decoded(uint64_t bits, Format f) {
  if (f.mantissa_bits == kMantissa64) return double_of(bits);
  const uint64_t magnitude = bits & magnitude_mask(f), sign = (bits >> (f.exponent_bits + f.mantissa_bits)) << 63;
  const uint64_t exponent = magnitude >> f.mantissa_bits, last = (uint64_t{1} << f.exponent_bits) - 1;
  const uint64_t fraction = magnitude << (kMantissa64 - f.mantissa_bits) & ((uint64_t{1} << kMantissa64) - 1);
  if (exponent == last && f.has_infinity) return double_of(sign | kInfinity64 | fraction);
  if (magnitude == magnitude_mask(f)) return double_of(sign | kInfinity64 | 1);  // e4m3fn's NaN
  if (exponent == 0) {  // zero and subnormal numbers: mantissa · 2^(1 - bias - mantissa_bits), a normal double
    const double value = static_cast<double>(magnitude) * power_of_two(1 - bias_of(f) - f.mantissa_bits);
    return double_of(sign | bits_of(value));
  }
  return double_of(sign | (exponent + static_cast<uint64_t>(kBias64 - bias_of(f))) << kMantissa64 | fraction);
}

/// Writes to `bits` what a finite `value` is in format `f`; false where it is no number of that format.
PARITY_HOST_DEVICE inline bool encoded_exactly(double value, Format f, uint64_t& bits) {
  const uint64_t whole = bits_of(value), sign = whole >> 63 << (f.exponent_bits + f.mantissa_bits);
  if (f.mantissa_bits == kMantissa64) {
    bits = whole;
    return true;
  }
  const uint64_t magnitude = whole & kMagnitude64;
  bits = sign;
  if (magnitude == 0) return true;
  const int exponent = static_cast<int>(magnitude >> kMantissa64) - kBias64 + bias_of(f);
  // A subnormal double lies below every number of the narrower formats.
  if (magnitude >> kMantissa64 == 0 || exponent < 1 - f.mantissa_bits) return false;
  const uint64_t significand = (magnitude & ((uint64_t{1} << kMantissa64) - 1)) | uint64_t{1} << kMantissa64;
  const int dropped = kMantissa64 - f.mantissa_bits + (exponent < 1 ? 1 - exponent : 0);
  if ((significand & ((uint64_t{1} << dropped) - 1)) != 0) return false;
  const uint64_t kept = significand >> dropped, one = uint64_t{1} << f.mantissa_bits;
  const uint64_t narrow =
      exponent < 1 ? kept : (static_cast<uint64_t>(exponent) << f.mantissa_bits) | (kept & (one - 1));
  const uint64_t past = f.has_infinity ? ((uint64_t{1} << f.exponent_bits) - 1) << f.mantissa_bits : magnitude_mask(f);
  if (narrow >= past) return false;
  bits = sign | narrow;
  return true;
}

/// The bits of element `i` of an array, widened.
PARITY_HOST_DEVICE inline uint64_t raw_bits(const void* data, Element e, int64_t i) {
  switch (bytes_of(e)) {
    case 8:
      return static_cast<const uint64_t*>(data)[i];
    case 4:
      return static_cast<const uint32_t*>(data)[i];
    case 2:
      return static_cast<const uint16_t*>(data)[i];
    default:
      return static_cast<const uint8_t*>(data)[i];
  }
}

}  // namespace parity::kernels::cuda
