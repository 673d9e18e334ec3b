// What a recording of statistics keeps of a tensor (FORMAT.md, `stats`).
#pragma once
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

/// Of the finite elements; moments by Welford's recurrence (Technometrics 4, 1962), which does not cancel.
struct Statistics {
  std::int64_t count = 0, nan = 0, infinite = 0, zero = 0;  // count: all elements
  double mean = 0, deviations = 0, mean_abs = 0, minimum = std::numeric_limits<double>::infinity(), maximum = -minimum;

  void add(double x) {
    ++count;
    if (std::isnan(x)) return void(++nan);
    if (std::isinf(x)) return void(++infinite);
    const auto n = static_cast<double>(finite());
    const double step = x - mean;
    mean += step / n, deviations += step * (x - mean), mean_abs += (std::abs(x) - mean_abs) / n;
    zero += x == 0, minimum = std::min(minimum, x), maximum = std::max(maximum, x);
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
  for (std::size_t i = 0; i < count; ++i) all.add(element(tensor, i));
  return all;
}

}  // namespace parity::probe
