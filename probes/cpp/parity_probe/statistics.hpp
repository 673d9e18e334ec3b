// What a recording of statistics keeps of a tensor (FORMAT.md, `stats`).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "pack.hpp"

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
double loaded(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<double>(value);
}

/// Element `index` as a double; of a complex number its magnitude. 64-bit integers lose what a double cannot hold.
inline double element(const Packed& t, std::size_t index) {
  const char* at = t.bytes.data() + index * t.dtype.size;
  switch (t.dtype.kind) {
    case Kind::real:
      if (t.dtype.size == 2) return small_float(static_cast<std::uint32_t>(loaded<std::uint16_t>(at)), 16, 5, false);
      return t.dtype.size == 4 ? loaded<float>(at) : loaded<double>(at);
    case Kind::bfloat: {
      const std::uint32_t wide = static_cast<std::uint32_t>(loaded<std::uint16_t>(at)) << 16;
      return loaded<float>(reinterpret_cast<const char*>(&wide));
    }
    case Kind::float8: {
      const bool e4m3 = std::string_view(t.dtype.name) == f8_e4m3.name;
      return small_float(static_cast<unsigned char>(*at), 8, e4m3 ? 4 : 5, e4m3);
    }
    case Kind::complex:
      return t.dtype.size == 8 ? std::hypot(loaded<float>(at), loaded<float>(at + 4))
                               : std::hypot(loaded<double>(at), loaded<double>(at + 8));
    case Kind::integer:
      return t.dtype.size == 1   ? loaded<std::int8_t>(at)
             : t.dtype.size == 2 ? loaded<std::int16_t>(at)
             : t.dtype.size == 4 ? loaded<std::int32_t>(at)
                                 : loaded<std::int64_t>(at);
    default:
      return t.dtype.size == 1   ? loaded<std::uint8_t>(at)
             : t.dtype.size == 2 ? loaded<std::uint16_t>(at)
             : t.dtype.size == 4 ? loaded<std::uint32_t>(at)
                                 : loaded<std::uint64_t>(at);
  }
}

/// Of the finite elements. A block's moments are summed about its own mean, and joined with those of the blocks before
/// (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979):
/// nothing cancels, and no element waits for a division.
struct Statistics {
  static constexpr std::size_t kBlock = 1024, kLanes = 8;   // elements; sums that do not wait for each other
  std::int64_t count = 0, nan = 0, infinite = 0, zero = 0;  // count: all elements
  double mean = 0, deviations = 0, mean_abs = 0, minimum = std::numeric_limits<double>::infinity(), maximum = -minimum;

  /// `x` is written over; at most kBlock elements.
  void add(double* x, std::size_t n) {
    const auto before = static_cast<double>(finite());
    const std::size_t kept = all_finite(x, n) ? n : keep_finite(x, n);
    count += static_cast<std::int64_t>(n);
    if (kept == 0) return;
    double sums[kLanes] = {}, magnitudes[kLanes] = {}, squares[kLanes] = {}, low[kLanes], high[kLanes];
    std::int64_t zeros[kLanes] = {};
    for (std::size_t k = 0; k < kLanes; ++k) low[k] = minimum, high[k] = maximum;
    in_lanes(kept, [&](std::size_t k, std::size_t i) {
      sums[k] += x[i], magnitudes[k] += std::abs(x[i]), zeros[k] += x[i] == 0;
      low[k] = x[i] < low[k] ? x[i] : low[k], high[k] = x[i] > high[k] ? x[i] : high[k];
    });
    const auto of_block = static_cast<double>(kept);
    const double own = total(sums) / of_block, step = own - mean, share = of_block / (before + of_block);
    in_lanes(kept, [&](std::size_t k, std::size_t i) { squares[k] += (x[i] - own) * (x[i] - own); });
    deviations += total(squares) + step * step * before * share;
    mean += step * share, mean_abs += (total(magnitudes) / of_block - mean_abs) * share;
    for (std::size_t k = 0; k < kLanes; ++k)
      zero += zeros[k], minimum = std::min(minimum, low[k]), maximum = std::max(maximum, high[k]);
  }

  static bool all_finite(const double* x, std::size_t n) {
    double nothing[kLanes] = {};  // NaN times 0, and infinity times 0, are NaN
    in_lanes(n, [&](std::size_t k, std::size_t i) { nothing[k] += x[i] * 0; });
    return total(nothing) == 0;
  }
  std::size_t keep_finite(double* x, std::size_t n) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double value = x[i];
      x[kept] = value, nan += std::isnan(value), infinite += std::isinf(value), kept += std::isfinite(value);
    }
    return kept;
  }

  template <class F>
  static void in_lanes(std::size_t n, F f) {
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      for (std::size_t k = 0; k < kLanes; ++k) f(k, i + k);
    for (; i < n; ++i) f(i % kLanes, i);
  }
  static double total(const double (&lanes)[kLanes]) {
    double sum = 0;
    for (const double lane : lanes) sum += lane;
    return sum;
  }

  std::int64_t finite() const { return count - nan - infinite; }

  /// Numbers that do not exist are null. `std` divides by the number of elements.
  std::string json() const {
    const auto number = [this](double x) {
      char text[32];
      std::snprintf(text, sizeof text, "%.17g", x);
      return finite() > 0 && std::isfinite(x) ? std::string(text) : std::string("null");
    };
    return "{\"count\":" + std::to_string(count) + ",\"nan\":" + std::to_string(nan) +
           ",\"inf\":" + std::to_string(infinite) + ",\"zero\":" + std::to_string(zero) + ",\"mean\":" + number(mean) +
           ",\"std\":" + number(std::sqrt(deviations / static_cast<double>(finite()))) +
           ",\"mean_abs\":" + number(mean_abs) + ",\"min\":" + number(minimum) + ",\"max\":" + number(maximum) + "}";
  }
};

inline Statistics statistics_of(const Packed& tensor) {
  Statistics all;
  const std::size_t count = tensor.bytes.size() / tensor.dtype.size;
  const bool floats = tensor.dtype.kind == Kind::real && tensor.dtype.size == sizeof(float);
  double block[Statistics::kBlock];
  for (std::size_t first = 0; first < count; first += Statistics::kBlock) {
    const std::size_t n = std::min(Statistics::kBlock, count - first);
    if (floats)  // without asking each element what it is
      for (std::size_t i = 0; i < n; ++i) block[i] = loaded<float>(tensor.bytes.data() + (first + i) * sizeof(float));
    else
      for (std::size_t i = 0; i < n; ++i) block[i] = element(tensor, first + i);
    all.add(block, n);
  }
  return all;
}

}  // namespace parity::probe
