// SSIM of two images on the CPU: windowed means and (co)variances in one sweep, vectorised with Highway, the
// instruction set chosen at run time. Knows nothing of videos or verdicts: src/video does.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace parity::kernels {

/// A separable, symmetric window of 11 or 7 taps; the border is cropped ("valid").
struct SsimWindow {
  int taps = 11;
  std::array<float, 11> weights{};  // of one dimension, sum 1
  float covariance = 1;             // 1: population; n / (n - 1): sample
};

/// A window's weights from its end to its middle, times `sum`. The outermost takes up what rounding leaves, so that all
/// of them together are exactly that: variances are small differences of squares, and what the means of squares and the
/// squares of means do not share cost up to 8e-6 of SSIM.
template <int kTaps>
std::array<float, kTaps / 2 + 1> half_weights(const SsimWindow& window, double sum) {
  std::array<float, kTaps / 2 + 1> half{};
  double rest = sum;
  for (size_t t = kTaps / 2; t > 0; --t) {
    half[t] = static_cast<float>(static_cast<double>(window.weights[t]) * sum);
    rest -= static_cast<double>(half[t]) * (t == kTaps / 2 ? 1 : 2);
  }
  half[0] = static_cast<float>(rest / 2);
  return half;
}

/// Two interleaved images of one size. A sample v counts as (v - zero) / span, so as a number in [0, 1].
template <class T>
struct ImagePair {
  const T *reference, *candidate;  // (height, width, channels)
  int width, height;
  int channels;  // 1 or 3
  float zero, span;
  int reach = 128;  // of int16_t: no sample is larger in magnitude; a power of two
};

/// Sums over all windows, a channel each; `windows` of them in each channel.
struct SsimSums {
  std::array<double, 3> ssim{};      // l * cs, Wang et al. 2004, equation 13 with K1 = .01, K2 = .03
  std::array<double, 3> contrast{};  // cs alone, for MS-SSIM
  int64_t windows = 0;               // 0: the image is smaller than the window
};

/// Means are accumulated in fp32 (8 bits and halvings: in integers along a row) on centred values, sums in fp64. The
/// mean differs from the definition's in fp64 by up to 1.2e-6 (8 bits) and 3.7e-6, measured where it is hardest: faint
/// noise on a bright picture. One thread; the same digits at every call.
SsimSums ssim_sums(const ImagePair<uint8_t>& images, const SsimWindow& window);
SsimSums ssim_sums(const ImagePair<uint16_t>& images, const SsimWindow& window);
SsimSums ssim_sums(const ImagePair<float>& images, const SsimWindow& window);
/// Halvings of 8-bit images (frame_halve.hpp).
SsimSums ssim_sums(const ImagePair<int16_t>& images, const SsimWindow& window);

}  // namespace parity::kernels
