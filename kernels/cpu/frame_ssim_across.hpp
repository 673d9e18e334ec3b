// SSIM of integers, along a row: products of samples, and windowed sums of them in integers, where one instruction
// multiplies two neighbours and adds them, and a vector serves its even and its odd columns. Part of
// frame_ssim_integer.cpp.
// Included once per instruction set, so without `pragma once`.
#if defined(PARITY_FRAME_SSIM_ACROSS) == defined(HWY_TARGET_TOGGLE)
#ifdef PARITY_FRAME_SSIM_ACROSS
#undef PARITY_FRAME_SSIM_ACROSS
#else
#define PARITY_FRAME_SSIM_ACROSS
#endif

#include <hwy/highway.h>

#include <cmath>
#include <type_traits>

#include "kernels/cpu/frame_ssim.hpp"

#if HWY_TARGET != HWY_SCALAR  // vectors of one lane have no neighbours
HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using I16 = hn::ScalableTag<int16_t>;
using I32 = hn::ScalableTag<int32_t>;
using V = hn::Vec<D>;

constexpr int kColumns = 96;                           // results of a row in one strip: 64 are 5 % slower
constexpr int kPlane = kColumns + 16 + HWY_MAX_BYTES;  // its inputs, and what the last vectors read beyond
static_assert(kColumns % (HWY_MAX_BYTES / sizeof(float) * 2) == 0);

// Of all numbers below 2^16 the one whose multiples of the Gaussian's weights lie closest to integers: 1e-6 apart.
constexpr double kWeightScale = 64218;

// a, b, a^2 + b^2, ab: of 8-bit samples in 16 bits each, else the last two as 65536 * high + low.
template <class T>
constexpr int kPlanes = std::is_same_v<T, uint8_t> ? 4 : 6;

template <class T>
struct alignas(HWY_MAX_BYTES) Planes {  // of one channel of one image row
  int16_t of[kPlanes<T>][kPlane] = {};
};

// Windowed sums along a row: of a, b, a^2 + b^2, ab in the samples' units, times the weights' sum. Of 2 * lanes columns
// first the even ones, then the odd ones.
struct alignas(HWY_MAX_BYTES) RowSums {
  float of[4][kColumns] = {};
};

HWY_INLINE hn::Vec<I16> load16(const uint8_t* p) {
  return hn::Sub(hn::PromoteTo(I16(), hn::LoadU(hn::Rebind<uint8_t, I16>(), p)), hn::Set(I16(), 128));
}
HWY_INLINE hn::Vec<I16> load16(const int16_t* p) { return hn::LoadU(I16(), p); }

HWY_INLINE void load16x3(const uint8_t* p, hn::Vec<I16>* v) {
  const hn::Rebind<uint8_t, I16> bytes;
  hn::Vec<decltype(bytes)> u[3];
  hn::LoadInterleaved3(bytes, p, u[0], u[1], u[2]);
  for (int k = 0; k < 3; ++k) v[k] = hn::Sub(hn::PromoteTo(I16(), u[k]), hn::Set(I16(), 128));
}
HWY_INLINE void load16x3(const int16_t* p, hn::Vec<I16>* v) { hn::LoadInterleaved3(I16(), p, v[0], v[1], v[2]); }

// |a| <= 128: a^2 + b^2 less 2^14 lies within 2^14.
HWY_INLINE void put(hn::Vec<I16> a, hn::Vec<I16> b, int x, int, Planes<uint8_t>& planes) {
  hn::StoreU(a, I16(), planes.of[0] + x);
  hn::StoreU(b, I16(), planes.of[1] + x);
  hn::StoreU(hn::Add(hn::Mul(a, a), hn::Sub(hn::Mul(b, b), hn::Set(I16(), 1 << 14))), I16(), planes.of[2] + x);
  hn::StoreU(hn::Mul(a, b), I16(), planes.of[3] + x);
}

// v = 65536 * high + low + 32768, both within 16 bits.
HWY_INLINE void split(hn::Vec<I32> v, int x, int16_t* high, int16_t* low) {
  const hn::Rebind<int16_t, I32> half;
  hn::StoreU(hn::DemoteTo(half, hn::ShiftRight<16>(v)), half, high + x);
  hn::StoreU(hn::DemoteTo(half, hn::Sub(hn::And(v, hn::Set(I32(), 0xffff)), hn::Set(I32(), 32768))), half, low + x);
}

// a^2 + b^2 less reach^2 lies within 2^30.
HWY_INLINE void put(hn::Vec<I16> a, hn::Vec<I16> b, int x, int reach, Planes<int16_t>& planes) {
  hn::StoreU(a, I16(), planes.of[0] + x);
  hn::StoreU(b, I16(), planes.of[1] + x);
  const auto lanes = static_cast<int>(hn::Lanes(I32()));
  const hn::Rebind<int16_t, I32> half;
  for (int part = 0; part < 2; ++part, x += lanes) {
    const auto wide_a = hn::PromoteTo(I32(), hn::LoadU(half, planes.of[0] + x)),
               wide_b = hn::PromoteTo(I32(), hn::LoadU(half, planes.of[1] + x));
    split(hn::Add(hn::Sub(hn::Mul(wide_a, wide_a), hn::Set(I32(), reach * reach)), hn::Mul(wide_b, wide_b)), x,
          planes.of[2], planes.of[3]);
    split(hn::Mul(wide_a, wide_b), x, planes.of[4], planes.of[5]);
  }
}

// One row of a strip, n pixels of both images. What is read beyond them is never used.
template <int kChannels, class T>
void enter(const T* a, const T* b, int n, int reach, Planes<T>* planes) {
  const int lanes = static_cast<int>(hn::Lanes(I16()));
  for (int x = 0; x < n; x += lanes)
    if constexpr (kChannels == 1) {
      put(load16(a + x), load16(b + x), x, reach, planes[0]);
    } else {
      hn::Vec<I16> va[3], vb[3];
      load16x3(a + 3 * x, va);
      load16x3(b + 3 * x, vb);
      for (int k = 0; k < 3; ++k) put(va[k], vb[k], x, reach, planes[k]);
    }
}

template <int kTaps>
struct IntegerWeights {
  static constexpr int kPairs = (kTaps + 1) / 2;
  hn::Vec<I16> even[kPairs], odd[kPairs];  // w0 w1, w2 w3, ... and 0 w0, w1 w2, ...
  double sum = 0;

  explicit IntegerWeights(const SsimWindow& window) {
    int w[kTaps + 3] = {};
    for (int k = 0; k < kTaps; ++k) {
      w[k + 1] =
          static_cast<int>(std::lround(static_cast<double>(window.weights[static_cast<size_t>(k)]) * kWeightScale));
      sum += w[k + 1];
    }
    const auto two = [](int first, int second) { return hn::BitCast(I16(), hn::Set(I32(), first | second << 16)); };
    for (int j = 0; j < kPairs; ++j) even[j] = two(w[2 * j + 1], w[2 * j + 2]), odd[j] = two(w[2 * j], w[2 * j + 1]);
  }
};

// Windowed sums at two vectors of columns: p[0 ...] at even[0], p[1 ...] at odd[0], p[2 ...] at even[1], and so on.
// Vectors at p, p + 2, p + 4, ...: from two aligned ones where one instruction does that. Loads across cache lines
// instead take a tenth of the whole kernel's time.
template <int kShift>
HWY_INLINE hn::Vec<I16> shifted(hn::Vec<I16> v, hn::Vec<I16> next, const int16_t* p) {
#if HWY_TARGET == HWY_AVX3
  (void)p;
  return hn::Vec<I16>{_mm512_alignr_epi32(next.raw, v.raw, kShift)};
#else
  (void)v, (void)next;
  return hn::LoadU(I16(), p + ptrdiff_t{2} * kShift);
#endif
}

inline bool has_vnni() {
#if HWY_TARGET == HWY_AVX3
  static const bool has = __builtin_cpu_supports("avx512vnni");
  return has;
#else
  return false;
#endif
}

// sum + the products of two neighbours. VNNI adds as it multiplies: a tenth of the kernel's time. (Highway 1.0's target
// with VNNI assumes AVX-VNNI, which fewer processors have.)
template <bool kVnni>
HWY_INLINE void dot(hn::Vec<I16> a, hn::Vec<I16> b, hn::Vec<I32>& sum, hn::Vec<I32>& rest) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kVnni) {
    asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return;
  }
#endif
  sum = hn::ReorderWidenMulAccumulate(I32(), a, b, sum, rest);
}

struct IntegerSums {
  hn::Vec<I32> even, even_rest, odd, odd_rest;
};

template <bool kVnni, int kTaps, int kPair = 0>
HWY_INLINE void add_pairs(const int16_t* p, hn::Vec<I16> v, hn::Vec<I16> next, const IntegerWeights<kTaps>& weights,
                          IntegerSums& s) {
  const auto pairs = shifted<kPair>(v, next, p);
  dot<kVnni>(pairs, weights.even[kPair], s.even, s.even_rest);
  dot<kVnni>(pairs, weights.odd[kPair], s.odd, s.odd_rest);
  if constexpr (kPair + 1 < IntegerWeights<kTaps>::kPairs) add_pairs<kVnni, kTaps, kPair + 1>(p, v, next, weights, s);
}

struct TwoSums {
  V even, odd;
};

// Windowed sums at two vectors of columns: p[0 ...] at even[0], p[1 ...] at odd[0], p[2 ...] at even[1], and so on.
template <bool kVnni, int kTaps>
HWY_INLINE TwoSums across(const int16_t* p, const IntegerWeights<kTaps>& weights, int offset) {
  const auto first = hn::Set(I32(), offset), zero = hn::Zero(I32());
  IntegerSums s{first, zero, first, zero};
  add_pairs<kVnni>(p, hn::LoadU(I16(), p), hn::LoadU(I16(), p + hn::Lanes(I16())), weights, s);
  return {hn::ConvertTo(D(), hn::RearrangeToOddPlusEven(s.even, s.even_rest)),
          hn::ConvertTo(D(), hn::RearrangeToOddPlusEven(s.odd, s.odd_rest))};
}

// What centring took from a^2 + b^2 and, where products are split into two parts, from ab; times the weights' sum.
// Where images are equal, a^2 + b^2 is with it exactly 2 ab, and SSIM exactly 1.
template <class T>
struct Offsets {
  int whole = 0;
  V squares, products;
  Offsets(double weights, double reach) {
    squares = hn::Set(D(), static_cast<float>(weights * (reach * reach + 0x1p15)));
    products = hn::Set(D(), static_cast<float>(weights * 0x1p15));
    if (kPlanes<T> == 4) whole = static_cast<int>(weights * 0x1p14);
  }
};

// Weights and offsets are copied: what is stored here could not change them, so they stay in registers.
template <bool kVnni, int kTaps, class T>
void row_sums(const Planes<T>* planes, int channels, int n, const IntegerWeights<kTaps>& all_weights,
              const Offsets<T>& all_offsets, RowSums* out) {
  const IntegerWeights<kTaps> weights = all_weights;
  const Offsets<T> offset = all_offsets;
  const int lanes = static_cast<int>(hn::Lanes(D()));
  for (const RowSums* end = out + channels; out < end; ++out, ++planes)
    for (int x = 0; x < n; x += 2 * lanes)
      for (int q = 0; q < 4; ++q) {
        const bool split = kPlanes<T> == 6 && q >= 2;
        const int plane = split ? 2 * q - 1 : q;
        TwoSums sums = across<kVnni>(planes->of[plane] + x, weights, q == 2 ? offset.whole : 0);
        if (split) {
          const TwoSums high = across<kVnni>(planes->of[plane - 1] + x, weights, 0);
          const V lost = q == 2 ? offset.squares : offset.products, unit = hn::Set(D(), 65536);
          sums = {hn::MulAdd(high.even, unit, hn::Add(sums.even, lost)),
                  hn::MulAdd(high.odd, unit, hn::Add(sums.odd, lost))};
        }
        hn::Store(sums.even, D(), out->of[q] + x);
        hn::Store(sums.odd, D(), out->of[q] + x + lanes);
      }
}

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#endif
