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

PARITY_HOST_DEVICE inline float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/// The bits of the first magnitude that is no finite number.
PARITY_HOST_DEVICE constexpr uint64_t first_special(Format f) {
  return f.has_infinity ? ((uint64_t{1} << f.exponent_bits) - 1) << f.mantissa_bits : magnitude_mask(f);
}

/// The number that `bits` are in format `f`, exactly; NaN and infinities as such. Read as the bits of a double,
/// exponent and mantissa are the number times 2^(bias - 1023), subnormal numbers too.
PARITY_HOST_DEVICE inline double decoded_by_parts(uint64_t bits, Format f) {
  const uint64_t magnitude = bits & magnitude_mask(f), sign = (bits >> (f.exponent_bits + f.mantissa_bits)) << 63;
  const uint64_t aligned = magnitude << (kMantissa64 - f.mantissa_bits);
  if (magnitude >= first_special(f)) return double_of(sign | aligned | kInfinity64 | (f.has_infinity ? 0 : 1));
  return double_of(sign | bits_of(double_of(aligned) * power_of_two(kBias64 - bias_of(f))));
}

/// The same for fp16. A GPU has an instruction for it, and for a float as a double.
PARITY_HOST_DEVICE inline double decoded_fp16(uint64_t bits) {
#ifdef __CUDA_ARCH__
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(static_cast<uint16_t>(bits)));
  return static_cast<double>(out);
#else
  return decoded_by_parts(bits, format_of(Element::fp16));
#endif
}

PARITY_HOST_DEVICE inline double decoded(uint64_t bits, Element e) {
  switch (e) {
    case Element::fp64:
      return double_of(bits);
    case Element::fp32:
      return static_cast<double>(float_of(static_cast<uint32_t>(bits)));
    case Element::bf16:
      return static_cast<double>(float_of(static_cast<uint32_t>(bits) << 16));
    case Element::fp16:
      return decoded_fp16(bits);
    default:
      return decoded_by_parts(bits, format_of(e));
  }
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
  if (narrow >= first_special(f)) return false;
  bits = sign | narrow;
  return true;
}

/// The bits of element `i` of an array.
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

PARITY_HOST_DEVICE inline double value_at(const void* data, Element e, int64_t i) {
  return decoded(raw_bits(data, e, i), e);
}

}  // namespace parity::kernels::cuda
