// The kernels of frame_ssim.hpp for integers: 8-bit images and their halvings. Highway compiles this file once per
// instruction set.
//
// Along a row the window is taken in integers, where one instruction multiplies two neighbours and adds them, and a
// load serves two columns; down the columns in fp32. Samples are centred, so that they and (8 bits) their products fit
// 16 bits; products of 16-bit samples are split into two parts. A strip is so narrow that the rows of its window stay
// in the first-level cache.
#include "kernels/cpu/frame_ssim.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/frame_ssim_integer.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR  // vectors of one lane have no neighbours
template <class T>
SsimSums ssim(const ImagePair<T>& p, const SsimWindow& window) {
  const int64_t n = int64_t{p.width} * p.height * p.channels;
  const std::vector<float> a(p.reference, p.reference + n), b(p.candidate, p.candidate + n);
  return ssim_sums(ImagePair<float>{a.data(), b.data(), p.width, p.height, p.channels, p.zero, p.span}, window);
}
#else
using D = hn::ScalableTag<float>;
using I16 = hn::ScalableTag<int16_t>;
using I32 = hn::ScalableTag<int32_t>;
using V = hn::Vec<D>;

constexpr int kColumns = 64;                           // results of a row in one strip
constexpr int kPlane = kColumns + 16 + HWY_MAX_BYTES;  // its inputs, and what the last vectors read beyond
static_assert(kColumns % (2 * HWY_MAX_BYTES / sizeof(float)) == 0);

// Of all numbers below 2^16 the one whose multiples of the Gaussian's weights lie closest to integers: 1e-6 apart.
constexpr double kWeightScale = 64218;

// a, b, a^2 + b^2, ab: of 8-bit samples in 16 bits each, else the last two as 65536 * high + low.
template <class T>
constexpr int kPlanes = std::is_same_v<T, uint8_t> ? 4 : 6;

template <class T>
struct alignas(HWY_MAX_BYTES) Planes {  // of one channel of one image row
  int16_t of[kPlanes<T>][kPlane] = {};
};

// Windowed means along a row: a, b, a^2 + b^2, ab in units of [0, 1]. Of 2 * lanes columns first the even ones, then
// the odd ones.
struct alignas(HWY_MAX_BYTES) Means {
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

struct TwoSums {
  V even, odd;
};

// Windowed sums at two vectors of columns: p[0 ...] at even[0], p[1 ...] at odd[0], p[2 ...] at even[1], and so on.
template <int kTaps>
HWY_INLINE TwoSums across(const int16_t* p, const IntegerWeights<kTaps>& weights, int offset) {
  auto even = hn::Zero(I32()), even_rest = even, odd = even, odd_rest = even;
  for (int j = 0; j < weights.kPairs; ++j) {
    const auto v = hn::LoadU(I16(), p + 2 * j);
    even = hn::ReorderWidenMulAccumulate(I32(), v, weights.even[j], even, even_rest);
    odd = hn::ReorderWidenMulAccumulate(I32(), v, weights.odd[j], odd, odd_rest);
  }
  const auto more = hn::Set(I32(), offset);
  return {hn::ConvertTo(D(), hn::Add(more, hn::RearrangeToOddPlusEven(even, even_rest))),
          hn::ConvertTo(D(), hn::Add(more, hn::RearrangeToOddPlusEven(odd, odd_rest)))};
}

// Integers to units of [0, 1]: value = (integer + whole_offset) * scale + offset. Where images are equal, a^2 + b^2 is
// then exactly 2 ab, and SSIM exactly 1.
template <class T>
struct Scales {
  V sample, product, high, squares_offset, product_offset;
  int whole_offset = 0;  // of a^2 + b^2
  Scales(double weights, double span, double reach) {
    constexpr bool kWhole = kPlanes<T> == 4;
    const auto set = [](double v) { return hn::Set(D(), static_cast<float>(v)); };
    sample = set(1 / (weights * span));
    product = set(1 / (weights * span * span));
    high = set(65536 / (weights * span * span));
    squares_offset = set(kWhole ? 0 : (reach * reach + 0x1p15) / (span * span));
    product_offset = set(kWhole ? 0 : 0x1p15 / (span * span));
    if (kWhole) whole_offset = static_cast<int>(weights * 0x1p14);
  }
};

template <int kTaps, class T>
void row_means(const Planes<T>& planes, int n, const IntegerWeights<kTaps>& weights, const Scales<T>& s, Means& means) {
  const int lanes = static_cast<int>(hn::Lanes(D()));
  for (int x = 0; x < n; x += 2 * lanes) {
    const auto put_row = [&](int q, V even, V odd) HWY_ATTR {
      hn::Store(even, D(), means.of[q] + x);
      hn::Store(odd, D(), means.of[q] + x + lanes);
    };
    for (int q = 0; q < 2; ++q) {
      const TwoSums sums = across<kTaps>(planes.of[q] + x, weights, 0);
      put_row(q, hn::Mul(sums.even, s.sample), hn::Mul(sums.odd, s.sample));
    }
    for (int q = 2; q < 4; ++q) {
      const V offset = q == 2 ? s.squares_offset : s.product_offset;
      const int plane = kPlanes<T> == 4 ? q : 2 * q - 1;
      TwoSums sums = across<kTaps>(planes.of[plane] + x, weights, q == 2 ? s.whole_offset : 0);
      sums = {hn::MulAdd(sums.even, s.product, offset), hn::MulAdd(sums.odd, s.product, offset)};
      if constexpr (kPlanes<T> == 6) {
        const TwoSums high = across<kTaps>(planes.of[plane - 1] + x, weights, 0);
        sums = {hn::MulAdd(high.even, s.high, sums.even), hn::MulAdd(high.odd, s.high, sums.odd)};
      }
      put_row(q, sums.even, sums.odd);
    }
  }
}

struct Terms {
  V ssim, contrast;
};

struct Constants {
  float middle, covariance;
};

// From the means of a, b, a^2 + b^2, ab. One division for both.
HWY_INLINE Terms terms(const V* mean, const Constants& k) {
  const V c1 = hn::Set(D(), .01f * .01f), c2 = hn::Set(D(), .03f * .03f), covariance = hn::Set(D(), k.covariance),
          middle = hn::Set(D(), k.middle);
  const V squares = hn::MulAdd(mean[0], mean[0], hn::Mul(mean[1], mean[1]));
  const V variances = hn::MulAdd(covariance, hn::Sub(mean[2], squares), c2);
  const V both = hn::Mul(covariance, hn::NegMulAdd(mean[0], mean[1], mean[3]));
  const V a = hn::Add(mean[0], middle), b = hn::Add(mean[1], middle), ab = hn::Mul(a, b);
  const V lightness = hn::Add(hn::MulAdd(a, a, hn::Mul(b, b)), c1);
  const V inverse = hn::Div(hn::Set(D(), 1), hn::Mul(variances, lightness));
  const V above = hn::Mul(hn::Add(hn::Add(both, both), c2), inverse);
  return {hn::Mul(above, hn::Add(hn::Add(ab, ab), c1)), hn::Mul(above, lightness)};
}

struct alignas(HWY_MAX_BYTES) Sums {  // of one channel, a lane each
  float ssim[HWY_MAX_BYTES / sizeof(float)] = {}, contrast[HWY_MAX_BYTES / sizeof(float)] = {};
};

// Two rows of results from kTaps + 1 rows of means: each is loaded once for both. The second is left out on demand.
template <int kTaps>
void columns(const Means* const* rows, const float* window, int n, bool two, const Constants& k, Sums& sums) {
  const int lanes = static_cast<int>(hn::Lanes(D()));
  V weight[kTaps / 2 + 1];
  for (int t = 0; t <= kTaps / 2; ++t) weight[t] = hn::Set(D(), window[t]);
  V ssim = hn::Load(D(), sums.ssim), contrast = hn::Load(D(), sums.contrast);
  for (int x = 0; x < (n + 2 * lanes - 1) / (2 * lanes) * 2 * lanes; x += lanes) {
    V mean[2][4];
    for (int q = 0; q < 4; ++q) {
      V v[kTaps + 1];
      for (int t = 0; t <= kTaps; ++t) v[t] = hn::Load(D(), rows[t]->of[q] + x);
      for (int r = 0; r < 2; ++r) {
        mean[r][q] = hn::Mul(weight[kTaps / 2], v[kTaps / 2 + r]);
        for (int t = 0; t < kTaps / 2; ++t)
          mean[r][q] = hn::MulAdd(weight[t], hn::Add(v[t + r], v[kTaps - 1 - t + r]), mean[r][q]);
      }
    }
    // Even columns, then odd ones: how many of this vector's lie within n?
    const int block = x / (2 * lanes) * 2 * lanes, odd = x % (2 * lanes) == 0 ? 0 : 1;
    const int valid = std::clamp((n - block + 1 - odd) / 2, 0, lanes);
    const auto mask = hn::FirstN(D(), static_cast<size_t>(valid));
    for (int r = 0; r < (two ? 2 : 1); ++r) {
      const Terms t = terms(mean[r], k);
      ssim = hn::Add(ssim, hn::IfThenElseZero(mask, t.ssim));
      contrast = hn::Add(contrast, hn::IfThenElseZero(mask, t.contrast));
    }
  }
  hn::Store(ssim, D(), sums.ssim);
  hn::Store(contrast, D(), sums.contrast);
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

template <int kTaps, int kChannels, class T>
class Strips {
 public:
  Strips(const ImagePair<T>& images, const SsimWindow& window)
      : p_(images),
        window_(window),
        weights_(window),
        scales_(weights_.sum, static_cast<double>(images.span), images.reach),
        constants_{-images.zero / images.span, window.covariance} {
    if constexpr (std::is_same_v<T, uint8_t>) constants_.middle = (128 - images.zero) / images.span;
  }

  /// Results in columns begin ... begin + n - 1. Rows enter a ring of kTaps + 1; every second completes two results.
  void one(int begin, int n, SsimSums& out) {
    for (int y = 0; y < p_.height; ++y) {
      enter_row(y, begin, n + kTaps - 1);
      for (int c = 0; c < kChannels; ++c) row_means<kTaps, T>(planes_[c], n, weights_, scales_, ring_[y % kRing][c]);
      const bool last = y == p_.height - 1, pair = y >= kTaps && (y - kTaps) % 2 == 0;
      if (!pair && !(last && y >= kTaps - 1)) continue;
      for (int c = 0; c < kChannels; ++c) {
        const Means* rows[kRing];  // without a pair the last one is an old row
        for (int t = 0; t < kRing; ++t) rows[t] = &ring_[(y + (pair ? 1 : 2) + t) % kRing][c];
        columns<kTaps>(rows, window_.weights.data(), n, pair, constants_, sums_[c]);
      }
      if ((y - kTaps) % 64 == 0) flush(sums_, kChannels, out);  // before fp32 lanes hold many
    }
    flush(sums_, kChannels, out);
  }

 private:
  static constexpr int kRing = kTaps + 1;

  void enter_row(int y, int begin, int n) {
    const int64_t at = (int64_t{y} * p_.width + begin) * kChannels, end = int64_t{p_.height} * p_.width * kChannels;
    const T *a = p_.reference + at, *b = p_.candidate + at;
    if (at + int64_t{kPlane} * kChannels > end) {  // vectors would read beyond the images
      std::memcpy(tail_[0], a, sizeof(T) * static_cast<size_t>(n * kChannels));
      std::memcpy(tail_[1], b, sizeof(T) * static_cast<size_t>(n * kChannels));
      a = tail_[0], b = tail_[1];
    }
    enter<kChannels, T>(a, b, n, p_.reach, planes_);
  }

  ImagePair<T> p_;
  SsimWindow window_;
  IntegerWeights<kTaps> weights_;
  Scales<T> scales_;
  Constants constants_;
  Planes<T> planes_[kChannels];
  Means ring_[kRing][kChannels];
  Sums sums_[kChannels];
  T tail_[2][kPlane * kChannels] = {};
};

template <int kTaps, int kChannels, class T>
SsimSums whole(const ImagePair<T>& p, const SsimWindow& window) {
  SsimSums sums;
  const int width = p.width - kTaps + 1, height = p.height - kTaps + 1;
  if (width <= 0 || height <= 0) return sums;
  Strips<kTaps, kChannels, T> strips(p, window);
  for (int begin = 0; begin < width; begin += kColumns) strips.one(begin, std::min(kColumns, width - begin), sums);
  sums.windows = int64_t{width} * height;
  return sums;
}

template <class T>
SsimSums ssim(const ImagePair<T>& p, const SsimWindow& w) {
  if (p.channels == 3) return w.taps == 7 ? whole<7, 3>(p, w) : whole<11, 3>(p, w);
  return w.taps == 7 ? whole<7, 1>(p, w) : whole<11, 1>(p, w);
}

#endif

SsimSums ssim8(const ImagePair<uint8_t>& p, const SsimWindow& window) { return ssim(p, window); }
SsimSums ssim_halved(const ImagePair<int16_t>& p, const SsimWindow& window) { return ssim(p, window); }

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace parity::kernels {

HWY_EXPORT(ssim8);
HWY_EXPORT(ssim_halved);

SsimSums ssim_sums(const ImagePair<uint8_t>& p, const SsimWindow& w) { return HWY_DYNAMIC_DISPATCH(ssim8)(p, w); }
SsimSums ssim_sums(const ImagePair<int16_t>& p, const SsimWindow& w) { return HWY_DYNAMIC_DISPATCH(ssim_halved)(p, w); }

}  // namespace parity::kernels
#endif
