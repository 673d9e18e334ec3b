// What one pass over a block of float32 numbers gives for statistics and sketches.
//
// By vectors where the compiler has them (GCC, clang): neither reorders sums by itself, and a loop of one sum waits for
// each addition. Of the memory's pace on one core of a Zen 4: 7.7 GB/s with the registers that every x86-64 has, 17.3
// with AVX2, which is taken where the processor has it; a loop by elements had 1.6.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace parity::probe {

/// In float64, but for the extremes. Where a number of the block is not finite, `magnitudes` is not, and only then: a
/// block is far too short for its sum to overflow. The rest means nothing then.
struct BlockSums {
  double sum = 0, magnitudes = 0, squares = 0;
  float minimum = 0, maximum = 0;
  std::int64_t zero = 0;

  /// One number more; the first has set the extremes.
  void add(float x) {
    const double wide = x;
    sum += wide, magnitudes += std::abs(wide), squares += wide * wide, zero += x == 0;
    minimum = std::min(minimum, x), maximum = std::max(maximum, x);
  }
};

inline float single_at(const char* at) {
  float value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

#if defined(__GNUC__)
namespace vectors {

template <std::size_t Bytes>
struct Of {  // named, as GCC drops the attribute of a type given as a template's argument
  typedef float Singles __attribute__((vector_size(Bytes)));
  typedef float Half __attribute__((vector_size(Bytes / 2)));
  typedef double Doubles __attribute__((vector_size(Bytes)));
  typedef std::int32_t Counts __attribute__((vector_size(Bytes)));
  typedef std::int64_t Bits __attribute__((vector_size(Bytes)));
};

template <class Vector>
__attribute__((always_inline)) inline void load(Vector& to, const void* from) {
  std::memcpy(&to, from, sizeof to);
}

/// The numbers of the block that fill whole vectors, at least one; returns how many.
template <std::size_t Bytes>
__attribute__((always_inline)) inline std::size_t whole(const char* x, std::size_t n, BlockSums& out) {
  using T = Of<Bytes>;
  constexpr std::size_t kLanes = Bytes / sizeof(float);
  typename T::Singles low, high, all, nothing{};
  typename T::Half half;
  typename T::Doubles sums[2]{}, magnitudes[2]{}, squares[2]{}, wide;
  typename T::Counts zeros{};
  typename T::Bits bits;
  load(low, x), load(high, x);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    load(all, x + i * sizeof(float));
    zeros -= all == nothing;  // a comparison's truth is -1
    low = all < low ? all : low, high = all > high ? all : high;
    for (std::size_t part = 0; part < 2; ++part) {
      load(half, x + (i + part * (kLanes / 2)) * sizeof(float));
      wide = __builtin_convertvector(half, typename T::Doubles);
      sums[part] += wide, squares[part] += wide * wide;
      load(bits, &wide), bits &= INT64_MAX, load(wide, &bits);  // without its sign
      magnitudes[part] += wide;
    }
  }
  for (std::size_t k = 0; k < kLanes; ++k) {
    out.sum += sums[k % 2][k / 2], out.magnitudes += magnitudes[k % 2][k / 2], out.squares += squares[k % 2][k / 2];
    out.minimum = std::min(out.minimum, low[k]), out.maximum = std::max(out.maximum, high[k]), out.zero += zeros[k];
  }
  return i;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) inline std::size_t by_avx2(const char* x, std::size_t n, BlockSums& out) {
  return whole<32>(x, n, out);
}
inline bool has_avx2() {
  static const bool found = __builtin_cpu_supports("avx2");
  return found;
}
#endif

inline std::size_t sum_up(const char* x, std::size_t n, BlockSums& out) {
#if defined(__x86_64__)
  if (n >= 8 && has_avx2()) return by_avx2(x, n, out);
#endif
  return n >= 4 ? whole<16>(x, n, out) : 0;
}

}  // namespace vectors
#else
namespace vectors {
inline std::size_t sum_up(const char*, std::size_t, BlockSums&) { return 0; }
}  // namespace vectors
#endif

/// Of `n` > 0 numbers from `x` on, which need not be aligned.
inline BlockSums block_sums(const char* x, std::size_t n) {
  BlockSums out;
  out.minimum = out.maximum = single_at(x);
  for (std::size_t i = vectors::sum_up(x, n, out); i < n; ++i) out.add(single_at(x + i * sizeof(float)));
  return out;
}

}  // namespace parity::probe
