// Pairs of arrays for the CUDA kernels' tests: ordinary and hostile data in every element type, and what their
// statistics are, in plain loops. Knows neither LibTorch nor the kernels' arithmetic.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace parity::test {

/// A type of float in memory: by its bits, so that nobody's conversion is trusted.
struct Stored {
  std::string name;
  int bytes, exponent_bits, mantissa_bits;
  bool infinity;
};
inline const std::vector<Stored>& stored_types() {  // in the order of the kernels' Element
  static const std::vector<Stored> all{{"fp64", 8, 11, 52, true}, {"fp32", 4, 8, 23, true},   {"fp16", 2, 5, 10, true},
                                       {"bf16", 2, 8, 7, true},   {"e4m3fn", 1, 4, 3, false}, {"e5m2", 1, 5, 2, true}};
  return all;
}

/// Two element types, with ordinary or hostile data: each pair of types both ways.
struct KindOfPair {
  Stored a, b;
  bool hostile;
  std::string name() const { return a.name + ", " + b.name + (hostile ? ", hostile" : ""); }
};
inline std::vector<KindOfPair> kinds_of_pairs() {
  std::vector<KindOfPair> all;
  for (const Stored& a : stored_types())
    for (const Stored& b : stored_types())
      for (const bool hostile : {false, true}) all.push_back({a, b, hostile});
  return all;
}

/// What `bits` are, by the definition of the format: sign · mantissa · 2^exponent.
inline double number_of(uint64_t bits, const Stored& t) {
  const uint64_t mantissa = bits & ((uint64_t{1} << t.mantissa_bits) - 1);
  const uint64_t exponent = bits >> t.mantissa_bits & ((uint64_t{1} << t.exponent_bits) - 1);
  const bool negative = bits >> (t.exponent_bits + t.mantissa_bits) & 1,
             last = exponent + 1 == uint64_t{1} << t.exponent_bits;
  const int bias = (1 << (t.exponent_bits - 1)) - 1;
  double value = 0;
  if (last && t.infinity)
    value = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  else if (last && mantissa + 1 == uint64_t{1} << t.mantissa_bits)
    value = std::numeric_limits<double>::quiet_NaN();
  else if (exponent == 0)
    value = std::ldexp(static_cast<double>(mantissa), 1 - bias - t.mantissa_bits);
  else
    value = std::ldexp(static_cast<double>(mantissa | uint64_t{1} << t.mantissa_bits),
                       static_cast<int>(exponent) - bias - t.mantissa_bits);
  return negative ? -value : value;
}

/// Bits of a number near `x` (its mantissa cut off), of the greatest where x lies beyond.
inline uint64_t bits_near(double x, const Stored& t) {
  const uint64_t sign = uint64_t{std::signbit(x)} << (t.exponent_bits + t.mantissa_bits);
  const uint64_t infinity = ((uint64_t{1} << t.exponent_bits) - 1) << t.mantissa_bits;
  uint64_t low = 0, high = t.infinity ? infinity - 1 : infinity + (uint64_t{1} << t.mantissa_bits) - 2;
  while (low < high) {  // numbers >= 0 are ordered like their bits
    const uint64_t middle = low + (high - low + 1) / 2;
    number_of(middle, t) <= std::abs(x) ? low = middle : high = middle - 1;
  }
  return sign | low;
}

struct Array {
  Stored type;
  std::vector<uint8_t> memory;
  explicit Array(Stored t) : type(std::move(t)) {}
  int64_t size() const { return static_cast<int64_t>(memory.size()) / type.bytes; }
  uint64_t bits(int64_t i) const {
    uint64_t out = 0;
    std::memcpy(&out, memory.data() + i * type.bytes, static_cast<size_t>(type.bytes));
    return out;
  }
  double operator[](int64_t i) const { return number_of(bits(i), type); }
  void push(uint64_t bits) {
    const auto* from = reinterpret_cast<const uint8_t*>(&bits);
    memory.insert(memory.end(), from, from + type.bytes);
  }
};

/// `hostile`: one in five is any bits at all: NaN, infinities, zeros of both signs, subnormal and huge numbers.
inline Array some_numbers(int64_t n, const Stored& t, uint64_t seed, bool hostile) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Array out(t);
  const uint64_t sign = uint64_t{1} << (t.exponent_bits + t.mantissa_bits), all = sign | (sign - 1);
  const uint64_t infinity = ((uint64_t{1} << t.exponent_bits) - 1) << t.mantissa_bits;
  const std::vector<uint64_t> special{0, sign, 1, sign | 1, infinity, sign | infinity, sign - 1, all, infinity - 1};
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t dice = random();
    if (!hostile || dice % 5 != 0)
      out.push(bits_near(normal(random), t));
    else
      out.push(dice / 5 % 2 == 0 ? random() & all : special[dice / 10 % special.size()]);
  }
  return out;
}

/// The same numbers in another type, most of them a little off.
inline Array near_copy(const Array& from, const Stored& t, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Array out(t);
  for (int64_t i = 0; i < from.size(); ++i) {
    const double x = from[i];
    const bool same = random() % 3 == 0;
    if (same && t.name == from.type.name)
      out.push(from.bits(i));
    else if (std::isfinite(x))
      out.push(bits_near(same ? x : x * (1 + .01 * normal(random)), t));
    else
      out.push(some_numbers(1, t, random(), true).bits(0));
  }
  return out;
}

/// Statistics in plain loops, sums in long double.
struct Plain {
  long double max_d = 0, sum_d = 0, sum_dd = 0, sum_r = 0, sum_c = 0, sum_rr = 0, sum_cc = 0, sum_rc = 0, sum_dr = 0;
  // of the absolute values of what is summed: the scale of the sums' rounding
  long double size_rc = 0, size_dr = 0;
  int64_t worst = -1, finite = 0, special_r = 0, special_c = 0, mismatch = 0, zeros_r = 0, zeros_c = 0;
  bool varies_r = false, varies_c = false;
  std::vector<double> distances;  // ascending
};

inline Plain plain_statistics(const Array& r, const Array& c) {
  Plain out;
  const auto kind = [](double x) { return std::isnan(x) ? 2 : std::isinf(x) ? (x > 0 ? 3 : 4) : 1; };
  for (int64_t i = 0; i < r.size(); ++i) {
    const double a = r[i], b = c[i];
    out.zeros_r += a == 0, out.zeros_c += b == 0;
    out.varies_r |= r.bits(i) != r.bits(0), out.varies_c |= c.bits(i) != c.bits(0);
    out.special_r += kind(a) != 1, out.special_c += kind(b) != 1, out.mismatch += kind(a) != kind(b);
    if (kind(a) != 1 || kind(b) != 1) continue;
    const double d = b - a;
    out.distances.push_back(std::abs(d));
    if (out.worst < 0 || std::abs(d) > out.max_d) out.worst = i, out.max_d = std::abs(d);
    ++out.finite;
    const long double x = a, y = b, z = d;
    out.sum_d += std::abs(z), out.sum_dd += z * z, out.sum_r += std::abs(x), out.sum_c += std::abs(y),
        out.sum_rr += x * x, out.sum_cc += y * y;
    out.sum_rc += x * y, out.sum_dr += z * x, out.size_rc += std::abs(x * y), out.size_dr += std::abs(z * x);
  }
  std::sort(out.distances.begin(), out.distances.end());
  return out;
}

/// Equal bits and the greatest distance in units of the last place, counted number by number as integers that are
/// ordered like the floats; false where a candidate is no number of the reference's type.
inline bool plain_bits(const Array& r, const Array& c, int64_t& equal, long double& ulp) {
  equal = 0, ulp = 0;
  const int width = r.type.exponent_bits + r.type.mantissa_bits;
  const auto place = [&](uint64_t bits) {
    const auto magnitude = static_cast<long double>(bits & ((uint64_t{1} << width) - 1));
    return bits >> width & 1 ? -magnitude : magnitude;
  };
  for (int64_t i = 0; i < r.size(); ++i) {
    const double a = r[i], b = c[i];
    if (!std::isfinite(a) || !std::isfinite(b)) {
      equal += (std::isnan(a) && std::isnan(b)) || (std::isinf(a) && std::isinf(b) && a == b);
      continue;
    }
    const uint64_t bits = r.type.name == c.type.name ? c.bits(i) : bits_near(b, r.type);
    if (number_of(bits, r.type) != b) return false;
    equal += bits == r.bits(i);
    ulp = std::max(ulp, std::abs(place(bits) - place(r.bits(i))));
  }
  return true;
}

}  // namespace parity::test
