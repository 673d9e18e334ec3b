// The kernels of frame_ssim.hpp for integers: 8-bit images and their halvings. Highway compiles this file once per
// instruction set.
//
// Along a row the window is taken in integers (frame_ssim_across.hpp), down the columns in fp32 (frame_ssim_down.hpp).
// Samples are centred, so that they and (8 bits) their products fit 16 bits; products of 16-bit samples are split into
// two parts. A strip is so narrow that the rows of its window stay in the first two levels of cache.
#include "kernels/cpu/frame_ssim.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/frame_ssim_integer.cpp"
#include <hwy/foreach_target.h>
// Only after foreach_target.h:
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cpu/frame_ssim_across.hpp"
#include "kernels/cpu/frame_ssim_down.hpp"

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
template <int kTaps, int kChannels, class T>
class Strips {
 public:
  Strips(const ImagePair<T>& images, const SsimWindow& window)
      : p_(images),
        weights_(window),
        column_weights_(half_weights<kTaps>(window, 1 / weights_.sum)),
        offsets_(weights_.sum, images.reach),
        constants_{.0001F * images.span * images.span, .0009F * images.span * images.span,
                   (std::is_same_v<T, uint8_t> ? 128 : 0) - images.zero, window.covariance} {}

  /// Results in columns begin ... begin + n - 1. Rows enter a ring; every fourth completes four rows of results.
  void one(int begin, int n, SsimSums& out) {
    const int results = p_.height - kTaps + 1;
    for (int y = 0, entered = 0; y < results; y += kRows) {
      for (; entered < std::min(y + kRing, p_.height); ++entered) {
        enter_row(entered, begin, int64_t{n} + kTaps - 1);
        row_sums_(planes_, kChannels, n, weights_, offsets_, ring_[entered % kRing]);
      }
      const RowSums* rows[kRing];  // at the end the last ones are old rows, of results that do not count
      for (int t = 0; t < kRing; ++t) rows[t] = ring_[(y + t) % kRing];
      columns<kTaps>(rows, column_weights_, kChannels, n, std::min(kRows, results - y), constants_, sums_);
      if (y / kRows % 16 == 15) flush(sums_, kChannels, out);  // before fp32 lanes hold many
    }
    flush(sums_, kChannels, out);
  }

 private:
  static constexpr int kRing = kTaps + kRows - 1;
  // Rows: the hardware cannot foresee where they begin. 8 of them leave the first level of cache before their
  // use.
  static constexpr int kAhead = 3;

  void enter_row(int y, int begin, int64_t n) {
    const int64_t at = (int64_t{y} * p_.width + begin) * kChannels, end = int64_t{p_.height} * p_.width * kChannels;
    const T *a = p_.reference + at, *b = p_.candidate + at;
    const int64_t ahead = int64_t{kAhead} * p_.width * kChannels;
    for (int64_t i = 0; at + ahead + n * kChannels < end && i < n * kChannels + 63; i += int64_t{64 / sizeof(T)}) {
      hwy::Prefetch(a + ahead + i);
      hwy::Prefetch(b + ahead + i);
    }
    if (at + int64_t{kPlane} * kChannels > end) {  // vectors would read beyond the images
      std::memcpy(tail_[0], a, sizeof(T) * static_cast<size_t>(n * kChannels));
      std::memcpy(tail_[1], b, sizeof(T) * static_cast<size_t>(n * kChannels));
      a = tail_[0], b = tail_[1];
    }
    enter<kChannels, T>(a, b, static_cast<int>(n), p_.reach, planes_);
  }

  void (*row_sums_)(const Planes<T>*, int, int, const IntegerWeights<kTaps>&, const Offsets<T>&,
                    RowSums*) = has_vnni() ? row_sums<true, kTaps, T> : row_sums<false, kTaps, T>;
  ImagePair<T> p_;
  IntegerWeights<kTaps> weights_;
  std::array<float, kTaps / 2 + 1> column_weights_;  // those along a row divided out
  Offsets<T> offsets_;
  SampleConstants constants_;
  Planes<T> planes_[kChannels];
  RowSums ring_[kRing][kChannels];
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
