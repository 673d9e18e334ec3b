// The kernels of frame_ssim.hpp for 16-bit and float images. Highway compiles this file once per instruction set
// (foreach_target.h includes it again).
//
// SSIM needs the variances only as their sum, so four windowed means do: of a, b, a^2 + b^2 and ab. Images stay
// interleaved: neighbours of one channel are `channels` apart. A strip of columns keeps its last rows in the
// second-level cache.
#include "kernels/cpu/frame_ssim.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/frame_ssim.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/highway.h>

#include <algorithm>
#include <vector>

HWY_BEFORE_NAMESPACE();
namespace parity::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int kQuantities = 4;
constexpr int kStrip = 768;  // results of a row in one strip; a multiple of 3 * any vector
constexpr int kRow =
    (kStrip + 10 * 3 + 6 * HWY_MAX_BYTES / 4 + 63) / 64 * 64;  // its inputs, and what the last vectors read beyond

HWY_INLINE V load(const uint16_t* p) {
  return hn::ConvertTo(D(), hn::PromoteTo(hn::RebindToSigned<D>(), hn::LoadU(hn::Rebind<uint16_t, D>(), p)));
}
HWY_INLINE V load(const float* p) { return hn::LoadU(D(), p); }

struct alignas(HWY_MAX_BYTES) Row {
  float quantity[kQuantities][kRow];
};

// One image row of a strip: n samples of both images into a, b, a^2 + b^2, ab.
template <class T>
void enter_row(const T* a, const T* b, int n, float scale, float shift, Row& row) {
  const int lanes = static_cast<int>(hn::Lanes(D()));
  const V k = hn::Set(D(), scale), s = hn::Set(D(), shift);
  const auto put = [&](int x, V va, V vb) HWY_ATTR {
    va = hn::MulAdd(va, k, s);
    vb = hn::MulAdd(vb, k, s);
    hn::StoreU(va, D(), row.quantity[0] + x);
    hn::StoreU(vb, D(), row.quantity[1] + x);
    hn::StoreU(hn::MulAdd(va, va, hn::Mul(vb, vb)), D(), row.quantity[2] + x);
    hn::StoreU(hn::Mul(va, vb), D(), row.quantity[3] + x);
  };
  int x = 0;
  for (; x + lanes <= n; x += lanes) put(x, load(a + x), load(b + x));
  if (x == n) return;
  T tail_a[HWY_MAX_BYTES / sizeof(float)] = {}, tail_b[HWY_MAX_BYTES / sizeof(float)] = {};
  for (int i = 0; i < lanes && x + i < n; ++i) tail_a[i] = a[x + i], tail_b[i] = b[x + i];
  put(x, load(tail_a), load(tail_b));
}

// Weights from the window's end to its middle, in registers.
template <int kTaps>
struct Weights {
  V w[kTaps / 2 + 1];
  HWY_INLINE explicit Weights(const float* weights) {
    for (int k = 0; k <= kTaps / 2; ++k) w[k] = hn::Set(D(), weights[k]);
  }
};

// The windowed mean over kTaps values that lie `step` apart; `at(k)` loads the k-th. Symmetric: taps are added first.
template <int kTaps, class At>
HWY_INLINE V windowed(const Weights<kTaps>& weights, At at) {
  V sum = hn::Mul(weights.w[kTaps / 2], at(kTaps / 2));
  for (int k = 0; k < kTaps / 2; ++k) sum = hn::MulAdd(weights.w[k], hn::Add(at(k), at(kTaps - 1 - k)), sum);
  return sum;
}

// Two rows of windowed means from kTaps + 1 rows: each input is loaded once for both, and loading is what limits.
template <int kTaps>
void columns(const Row* const* rows, const float* window, int n, Row* out) {
  const int lanes = static_cast<int>(hn::Lanes(D()));
  const Weights<kTaps> weights(window);
  for (int q = 0; q < kQuantities; ++q) {
    const float* in[kTaps + 1];
    for (int k = 0; k <= kTaps; ++k) in[k] = rows[k]->quantity[q];
    for (int x = 0; x < n; x += lanes) {
      V v[kTaps + 1];
      for (int k = 0; k <= kTaps; ++k) v[k] = hn::Load(D(), in[k] + x);
      hn::Store(windowed<kTaps>(weights, [&](int k) HWY_ATTR { return v[k]; }), D(), out[0].quantity[q] + x);
      hn::Store(windowed<kTaps>(weights, [&](int k) HWY_ATTR { return v[k + 1]; }), D(), out[1].quantity[q] + x);
    }
  }
}

struct Constants {
  V half, c1, c2, covariance;
};

struct Terms {
  V ssim, contrast;
};

template <int kTaps>
HWY_INLINE Terms one_vector(const Row& means, const Weights<kTaps>& weights, int x, int channels, const Constants& k) {
  V mean[kQuantities];
  for (int q = 0; q < kQuantities; ++q)
    mean[q] =
        windowed<kTaps>(weights, [&](int t) HWY_ATTR { return hn::LoadU(D(), means.quantity[q] + x + t * channels); });
  const V ab = hn::Mul(mean[0], mean[1]), squares = hn::MulAdd(mean[0], mean[0], hn::Mul(mean[1], mean[1]));
  const V variances = hn::Mul(k.covariance, hn::Sub(mean[2], squares)),
          covariance = hn::Mul(k.covariance, hn::Sub(mean[3], ab));
  const V a = hn::Add(mean[0], k.half), b = hn::Add(mean[1], k.half);
  const V product = hn::Mul(a, b), lightness = hn::Add(hn::MulAdd(a, a, hn::Mul(b, b)), k.c1);
  // One division for both terms.
  const V inverse = hn::Div(hn::Set(D(), 1), hn::Mul(hn::Add(variances, k.c2), lightness));
  const V above = hn::Mul(hn::Add(hn::Add(covariance, covariance), k.c2), inverse);
  return {hn::Mul(above, hn::Add(hn::Add(product, product), k.c1)), hn::Mul(above, lightness)};
}

void add_lanes(V ssim, V contrast, int first, int lanes, int channels, SsimSums& sums) {
  float s[HWY_MAX_BYTES / sizeof(float)] = {}, c[HWY_MAX_BYTES / sizeof(float)] = {};
  hn::StoreU(ssim, D(), s);
  hn::StoreU(contrast, D(), c);
  for (int i = 0; i < lanes; ++i) {
    const auto channel = static_cast<size_t>((first + i) % channels);
    sums.ssim[channel] += static_cast<double>(s[i]);
    sums.contrast[channel] += static_cast<double>(c[i]);
  }
}

// One row of results. Three vectors a turn, so that a lane keeps its channel whatever the vector's length.
template <int kTaps>
void across(const Row& means, const float* window, int n, int channels, const Constants& k, SsimSums& sums) {
  const int lanes = static_cast<int>(hn::Lanes(D()));
  const Weights<kTaps> weights(window);
  const V zero = hn::Zero(D());
  V ssim[3] = {zero, zero, zero}, contrast[3] = {zero, zero, zero};
  int x = 0;
  for (; x + 3 * lanes <= n; x += 3 * lanes)
    for (int j = 0; j < 3; ++j) {
      const Terms terms = one_vector<kTaps>(means, weights, x + j * lanes, channels, k);
      ssim[j] = hn::Add(ssim[j], terms.ssim);
      contrast[j] = hn::Add(contrast[j], terms.contrast);
    }
  for (int j = 0; j < 3; ++j) add_lanes(ssim[j], contrast[j], j * lanes, lanes, channels, sums);
  for (; x < n; x += lanes) {
    const Terms terms = one_vector<kTaps>(means, weights, x, channels, k);
    add_lanes(terms.ssim, terms.contrast, x, std::min(lanes, n - x), channels, sums);
  }
}

// Rows enter a ring of kTaps + 1; every second one completes two rows of results.
template <int kTaps, class T>
void strip(const ImagePair<T>& p, const SsimWindow& window, int begin, int n, std::vector<Row>& rows, SsimSums& sums) {
  const Constants k{hn::Set(D(), .5f), hn::Set(D(), .01f * .01f), hn::Set(D(), .03f * .03f),
                    hn::Set(D(), window.covariance)};
  const float scale = 1 / p.span, shift = -p.zero / p.span - .5f;
  const int inputs = n + (kTaps - 1) * p.channels;
  const int64_t stride = int64_t{p.width} * p.channels;
  const auto half = half_weights<kTaps>(window, 1);
  const float* weights = half.data();
  constexpr int kRing = kTaps + 1;
  Row* means = &rows[kRing];
  for (int y = 0; y < p.height; ++y) {
    enter_row(p.reference + y * stride + begin, p.candidate + y * stride + begin, inputs, scale, shift,
              rows[static_cast<size_t>(y % kRing)]);
    const bool last = y == p.height - 1, pair = y >= kTaps && (y - kTaps) % 2 == 0;
    if (!pair && !(last && y >= kTaps - 1)) continue;
    const Row* ordered[kRing];  // without a pair the last one is an old row, and the second result is not used
    for (int t = 0; t < kRing; ++t) ordered[t] = &rows[static_cast<size_t>((y + (pair ? 1 : 2) + t) % kRing)];
    columns<kTaps>(ordered, weights, inputs, means);
    across<kTaps>(means[0], weights, n, p.channels, k, sums);
    if (pair) across<kTaps>(means[1], weights, n, p.channels, k, sums);
  }
}

template <int kTaps, class T>
SsimSums whole(const ImagePair<T>& p, const SsimWindow& window) {
  SsimSums sums;
  const int width = p.width - kTaps + 1, height = p.height - kTaps + 1;
  if (width <= 0 || height <= 0) return sums;
  std::vector<Row> rows(kTaps + 3);  // zeros: what lies beyond a row's end is read, never used
  for (int begin = 0; begin < width * p.channels; begin += kStrip)
    strip<kTaps>(p, window, begin, std::min(kStrip, width * p.channels - begin), rows, sums);
  sums.windows = int64_t{width} * height;
  return sums;
}

template <class T>
SsimSums ssim(const ImagePair<T>& p, const SsimWindow& window) {
  return window.taps == 7 ? whole<7>(p, window) : whole<11>(p, window);
}

SsimSums ssim16(const ImagePair<uint16_t>& p, const SsimWindow& window) { return ssim(p, window); }
SsimSums ssim32(const ImagePair<float>& p, const SsimWindow& window) { return ssim(p, window); }

}  // namespace parity::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace parity::kernels {

HWY_EXPORT(ssim16);
HWY_EXPORT(ssim32);

SsimSums ssim_sums(const ImagePair<uint16_t>& p, const SsimWindow& w) { return HWY_DYNAMIC_DISPATCH(ssim16)(p, w); }
SsimSums ssim_sums(const ImagePair<float>& p, const SsimWindow& w) { return HWY_DYNAMIC_DISPATCH(ssim32)(p, w); }

}  // namespace parity::kernels
#endif
