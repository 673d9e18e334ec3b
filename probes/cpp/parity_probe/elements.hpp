// A tensor's elements as numbers: one by one, or many at once as float32 where that holds them and float64 otherwise.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

#include "types.hpp"

namespace parity::probe {

// An IEEE-like float of `bits` bits with `exponent` exponent bits as a double; float8_e4m3fn has NaN where others have
// infinity (no_infinity).
inline double small_float(std::uint32_t raw, int bits, int exponent, bool no_infinity) {
  const int mantissa = bits - 1 - exponent, bias = (1 << (exponent - 1)) - 1, most = (1 << exponent) - 1;
  const std::uint32_t fraction = raw & ((1U << mantissa) - 1);
  const int power = static_cast<int>(raw >> mantissa) & most;
  const double sign = (raw >> (bits - 1)) != 0 ? -1 : 1;
  const bool special = power == most && (!no_infinity || fraction == (1U << mantissa) - 1);
  if (special)
    return fraction == 0 && !no_infinity ? sign * std::numeric_limits<double>::infinity()
                                         : std::numeric_limits<double>::quiet_NaN();
  if (power == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa);
  return sign * std::ldexp(fraction + (1U << mantissa), power - bias - mantissa);
}

template <class T>
T loaded(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Some thousand elements of one type as float32 or float64. The loops over kRun of them are what compilers make
// vectors of at -O2.
namespace widening {

constexpr std::size_t kRun = 16;

// `f` is not a function but a type that has one, so that it is inlined.
template <class From, class To, class F>
void each(const char* at, std::size_t n, char* out, F f) {
  std::size_t i = 0;
  for (; i + kRun <= n; i += kRun) {
    From run[kRun];
    To wide[kRun];
    std::memcpy(run, at + i * sizeof(From), sizeof run);
    for (std::size_t k = 0; k < kRun; ++k) wide[k] = f(run[k]);
    std::memcpy(out + i * sizeof(To), wide, sizeof wide);
  }
  for (; i < n; ++i) {
    const To wide = f(loaded<From>(at + i * sizeof(From)));
    std::memcpy(out + i * sizeof(To), &wide, sizeof wide);
  }
}

struct OfBfloat {
  std::uint32_t operator()(std::uint16_t raw) const { return std::uint32_t{raw} << 16; }
};

// The bits of a half's value as a float32's, by whole numbers alone but for a subnormal, which is its fraction in units
// of 2^-24.
struct OfHalf {
  std::uint32_t operator()(std::uint16_t raw) const {
    const std::int32_t magnitude = raw & 0x7FFF, power = raw & 0x7C00, none = -(power == 0), most = -(power == 0x7C00);
    const float small = static_cast<float>(magnitude) * 0x1p-24F;
    std::int32_t below;
    std::memcpy(&below, &small, sizeof below);
    const std::int32_t above = (magnitude << 13) + (112 << 23) + (most & (112 << 23));
    return (raw & 0x8000U) << 16 | static_cast<std::uint32_t>((none & below) | (~none & above));
  }
};

/// The values of all 256 bit patterns.
inline const std::array<float, 256>& of_float8(bool e4m3) {
  static const auto tables = [] {
    std::array<std::array<float, 256>, 2> made;
    for (int kind = 0; kind < 2; ++kind)
      for (std::uint32_t raw = 0; raw < 256; ++raw)
        made[kind][raw] = static_cast<float>(small_float(raw, 8, kind != 0 ? 4 : 5, kind != 0));
    return made;
  }();
  return tables[e4m3 ? 1 : 0];
}

template <class T>
void doubles(const char* at, std::size_t n, double* out) {
  each<T, double>(at, n, reinterpret_cast<char*>(out), [](T x) { return static_cast<double>(x); });
}

}  // namespace widening

/// Does float32 hold all numbers of this type?
inline bool are_singles(Dtype dtype) {
  return dtype.kind == Kind::bfloat || dtype.kind == Kind::float8 || (dtype.kind == Kind::real && dtype.size <= 4);
}

/// Of a type whose numbers float32 holds: `n` of them, as they lie there when they are float32, else in `room`.
inline const char* singles(const char* at, Dtype dtype, std::size_t n, float* room) {
  auto* bits = reinterpret_cast<char*>(room);
  if (dtype.kind == Kind::float8) {
    const std::array<float, 256>& table = widening::of_float8(std::string_view(dtype.name) == f8_e4m3.name);
    for (std::size_t i = 0; i < n; ++i) room[i] = table[static_cast<unsigned char>(at[i])];
    return bits;
  }
  if (dtype.size == 4) return at;
  if (dtype.kind == Kind::bfloat)
    widening::each<std::uint16_t, std::uint32_t>(at, n, bits, widening::OfBfloat());
  else
    widening::each<std::uint16_t, std::uint32_t>(at, n, bits, widening::OfHalf());
  return bits;
}

/// Of any type as float64, of a complex one the magnitudes. 64-bit integers lose what a double cannot hold.
inline void doubles(const char* at, Dtype dtype, std::size_t n, double* out) {
  const bool is_signed = dtype.kind == Kind::integer;
  if (are_singles(dtype)) {
    float some[widening::kRun];
    for (std::size_t i = 0; i < n; i += widening::kRun) {
      const std::size_t count = std::min(widening::kRun, n - i);
      widening::doubles<float>(singles(at + i * dtype.size, dtype, count, some), count, out + i);
    }
  } else if (dtype.kind == Kind::complex) {
    const std::size_t half = dtype.size / 2;
    for (std::size_t i = 0; i < n; ++i, at += dtype.size)
      out[i] = half == 4
                   ? std::hypot(static_cast<double>(loaded<float>(at)), static_cast<double>(loaded<float>(at + 4)))
                   : std::hypot(loaded<double>(at), loaded<double>(at + 8));
  } else if (dtype.kind == Kind::real) {
    std::memcpy(out, at, n * sizeof(double));
  } else if (dtype.size == 8) {
    is_signed ? widening::doubles<std::int64_t>(at, n, out) : widening::doubles<std::uint64_t>(at, n, out);
  } else if (dtype.size == 4) {
    is_signed ? widening::doubles<std::int32_t>(at, n, out) : widening::doubles<std::uint32_t>(at, n, out);
  } else if (dtype.size == 2) {
    is_signed ? widening::doubles<std::int16_t>(at, n, out) : widening::doubles<std::uint16_t>(at, n, out);
  } else {
    is_signed ? widening::doubles<std::int8_t>(at, n, out) : widening::doubles<std::uint8_t>(at, n, out);
  }
}

}  // namespace parity::probe
