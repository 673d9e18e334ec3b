// SSIM of integers, down the columns: windowed means of the rows' sums in fp32, and SSIM's terms of them. Part of
// frame_ssim_integer.cpp.
// Included once per instruction set, so without `pragma once`.
#if defined(PARITY_FRAME_SSIM_DOWN) == defined(HWY_TARGET_TOGGLE)
#ifdef PARITY_FRAME_SSIM_DOWN
#undef PARITY_FRAME_SSIM_DOWN
#else
#define PARITY_FRAME_SSIM_DOWN
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/frame_ssim_across.hpp"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {

constexpr int kRows = 4;  // rows of results at a time: a row of means is loaded once for all of them
constexpr int kLanes = HWY_MAX_BYTES / sizeof(float);

struct SampleTerms {
  V ssim, contrast;
};

struct SampleConstants {  // in the samples' units
  float c1, c2, middle, covariance;
};

HWY_INLINE V reciprocal(V v) {
#if HWY_ARCH_X86  // 12 or 14 bits, doubled by a step of Newton's
  const V r = hn::ApproximateReciprocal(v);
  return hn::Mul(r, hn::NegMulAdd(v, r, hn::Set(D(), 2)));
#else
  return hn::Div(hn::Set(D(), 1), v);
#endif
}

// From the means of a, b, a^2 + b^2, ab. A denominator is its numerator and what is left of (a - b)^2: where images are
// equal, both terms are 1. One division for both.
HWY_INLINE SampleTerms terms(const float (*mean)[kLanes], const SampleConstants& k) {
  const V c1 = hn::Set(D(), k.c1), c2 = hn::Set(D(), k.c2), covariance = hn::Set(D(), k.covariance),
          middle = hn::Set(D(), k.middle);
  const V a = hn::Load(D(), mean[0]), b = hn::Load(D(), mean[1]), squares = hn::Load(D(), mean[2]),
          products = hn::Load(D(), mean[3]), d = hn::Sub(a, b);
  const V twice = hn::Add(products, products);
  const V unlike = hn::NegMulAdd(d, d, hn::Sub(squares, twice));  // the variance of a - b
  const V alike = hn::MulAdd(covariance, hn::NegMulAdd(hn::Add(a, a), b, twice), c2);
  const V from_zero = hn::Add(a, middle);
  const V light = hn::MulAdd(hn::Add(from_zero, from_zero), hn::Add(b, middle), c1), lights = hn::MulAdd(d, d, light);
  const V quotient = hn::Mul(alike, reciprocal(hn::Mul(hn::MulAdd(covariance, unlike, alike), lights)));
  return {hn::Mul(quotient, light), hn::Mul(quotient, lights)};
}

struct alignas(HWY_MAX_BYTES) Sums {  // of one channel, a lane each
  float ssim[kLanes] = {}, contrast[kLanes] = {};
};

// A vector's windowed means of one quantity down the columns: kRows of them, from kRows + kTaps - 1 rows' sums.
template <int kTaps>
HWY_INLINE void down(const RowSums* const* rows, int c, int q, int x, const V* weight, float (*mean)[4][kLanes]) {
  V v[kTaps + kRows - 1], sum[kRows];
  for (int t = 0; t < kTaps + kRows - 1; ++t) v[t] = hn::Load(D(), rows[t][c].of[q] + x);
  for (int r = 0; r < kRows; ++r) sum[r] = hn::Mul(weight[kTaps / 2], v[kTaps / 2 + r]);
  for (int t = 0; t < kTaps / 2; ++t)  // symmetric: taps are added first
    for (int r = 0; r < kRows; ++r) sum[r] = hn::MulAdd(weight[t], hn::Add(v[t + r], v[kTaps - 1 - t + r]), sum[r]);
  for (int r = 0; r < kRows; ++r) hn::Store(sum[r], D(), mean[r][q]);
}

// How many of the vector of results at x lie within n? Of 2 * lanes columns the even ones come first, then the odd
// ones.
HWY_INLINE int within(int n, int x, int lanes) {
  const int block = x / (2 * lanes) * 2 * lanes, odd = x % (2 * lanes) == 0 ? 0 : 1;
  return std::clamp((n - block + 1 - odd) / 2, 0, lanes);
}

// The first `count` of kRows rows of results, from kRows + kTaps - 1 rows of one RowSums a channel.
template <int kTaps>
void columns(const RowSums* const* rows, const std::array<float, kTaps / 2 + 1>& weights, int channels, int n,
             int count, const SampleConstants& k, Sums* sums) {
  const int lanes = static_cast<int>(hn::Lanes(D()));
  alignas(HWY_MAX_BYTES) float mean[kRows][4][kLanes];
  V weight[kTaps / 2 + 1];
  for (size_t t = 0; t <= kTaps / 2; ++t) weight[t] = hn::Set(D(), weights[t]);
  for (int c = 0; c < channels; ++c)
    for (int x = 0; x < (n + 2 * lanes - 1) / (2 * lanes) * 2 * lanes; x += lanes) {
#pragma GCC unroll 1  // one quantity at a time fits the registers
      for (int q = 0; q < 4; ++q) down<kTaps>(rows, c, q, x, weight, mean);
      V ssim = hn::Zero(D()), contrast = hn::Zero(D());
      const auto add = [&](const SampleTerms& t) HWY_ATTR {
        ssim = hn::Add(ssim, t.ssim);
        contrast = hn::Add(contrast, t.contrast);
      };
      if (count == kRows) {
        const SampleTerms all[] = {terms(mean[0], k), terms(mean[1], k), terms(mean[2], k), terms(mean[3], k)};
        for (const SampleTerms& t : all) add(t);
      } else {
        for (int r = 0; r < count; ++r) add(terms(mean[r], k));
      }
      const auto mask = hn::FirstN(D(), static_cast<size_t>(within(n, x, lanes)));
      hn::Store(hn::Add(hn::Load(D(), sums[c].ssim), hn::IfThenElseZero(mask, ssim)), D(), sums[c].ssim);
      hn::Store(hn::Add(hn::Load(D(), sums[c].contrast), hn::IfThenElseZero(mask, contrast)), D(), sums[c].contrast);
    }
}

void flush(Sums* sums, int channels, SsimSums& out) {
  for (int c = 0; c < channels; ++c) {
    for (size_t i = 0; i < hn::Lanes(D()); ++i) {
      out.ssim[static_cast<size_t>(c)] += static_cast<double>(sums[c].ssim[i]);
      out.contrast[static_cast<size_t>(c)] += static_cast<double>(sums[c].contrast[i]);
    }
    sums[c] = {};
  }
}

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#endif
