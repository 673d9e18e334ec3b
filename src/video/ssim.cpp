// The three definitions of SSIM, and MS-SSIM.
#include <algorithm>
#include <cmath>
#include <functional>

#include "kernels/cpu/frame_halve.hpp"
#include "kernels/cpu/frame_ssim.hpp"
#include "video/measure.hpp"

namespace parity {
namespace {

using kernels::ImagePair;
using kernels::SsimSums;
using kernels::SsimWindow;

SsimWindow gaussian_window() {
  SsimWindow window;
  double weights[11], sum = 0;
  for (int k = 0; k < 11; ++k) sum += weights[k] = std::exp(-(k - 5) * (k - 5) / (2 * 1.5 * 1.5));
  for (size_t k = 0; k < 11; ++k) window.weights[k] = static_cast<float>(weights[k] / sum);
  return window;
}

SsimWindow uniform_window() {
  SsimWindow window;
  window.taps = 7;
  window.weights.fill(1.0F / 7);
  window.covariance = 49.0F / 48;
  return window;
}

/// Mean SSIM and contrast term of each channel.
struct Means {
  std::vector<double> ssim, contrast;
};

template <class T>
Means means_of(const ImagePair<T>& images, const SsimWindow& window) {
  const SsimSums sums = kernels::ssim_sums(images, window);
  Means means;
  for (size_t k = 0; k < static_cast<size_t>(images.channels) && sums.windows > 0; ++k) {
    means.ssim.push_back(sums.ssim[k] / static_cast<double>(sums.windows));
    means.contrast.push_back(sums.contrast[k] / static_cast<double>(sums.windows));
  }
  return means;
}

template <class T>
Means interleaved(const Frame& r, const Frame& c, const SsimWindow& window) {
  return means_of(ImagePair<T>{r.as<T>(), c.as<T>(), r.width, r.height, r.channels, r.zero, r.span}, window);
}

Frame channel(const Frame& frame, int k) {
  Frame unit, out;
  to_unit(frame, unit);
  out.shape(frame.width, frame.height, 1, Sample::f32);
  out.span = 1;
  for (size_t i = 0; i < out.count(); ++i)
    out.as<float>()[i] = unit.as<float>()[i * static_cast<size_t>(frame.channels) + static_cast<size_t>(k)];
  return out;
}

Means means_of(const Frame& r, const Frame& c, const SsimWindow& window) {
  if (r.channels == 1 || r.channels == 3) {
    if (r.sample == Sample::u8) return interleaved<uint8_t>(r, c, window);
    if (r.sample == Sample::u16) return interleaved<uint16_t>(r, c, window);
    return interleaved<float>(r, c, window);
  }
  Means all;
  for (int k = 0; k < r.channels; ++k) {  // latents
    const Means one = interleaved<float>(channel(r, k), channel(c, k), window);
    all.ssim.insert(all.ssim.end(), one.ssim.begin(), one.ssim.end());
    all.contrast.insert(all.contrast.end(), one.contrast.begin(), one.contrast.end());
  }
  return all;
}

std::optional<double> mean(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

/// 2x2 averages; an odd last row or column is left out.
template <class T>
Frame halved(const Frame& in) {
  Frame out;
  out.shape(in.width / 2, in.height / 2, in.channels, Sample::f32);
  out.span = 1;
  const size_t c = static_cast<size_t>(in.channels), row = static_cast<size_t>(in.width) * c;
  const float scale = .25F / in.span, shift = -in.zero / in.span;
  for (size_t y = 0; y < static_cast<size_t>(out.height); ++y) {
    const T *upper = in.as<T>() + 2 * y * row, *lower = upper + row;
    float* to = out.as<float>() + y * static_cast<size_t>(out.width) * c;
    for (size_t x = 0; x < static_cast<size_t>(out.width); ++x, upper += 2 * c, lower += 2 * c)
      for (size_t k = 0; k < c; ++k)
        *to++ = static_cast<float>(upper[k] + upper[k + c] + lower[k] + lower[k + c]) * scale + shift;
  }
  return out;
}

Frame halved(const Frame& in) {
  if (in.sample == Sample::u16) return halved<uint16_t>(in);
  return halved<float>(in);
}

using OfScale = std::function<void(int scale, const Means&)>;

void further_scales(const Frame& reference, const Frame& candidate, const SsimWindow& window, const OfScale& take) {
  Frame r = halved(reference), c = halved(candidate);
  for (int scale = 1; scale < 5; ++scale) {
    take(scale, means_of(r, c, window));
    if (scale < 4) r = halved(r), c = halved(c);
  }
}

/// The same in integers: sums of 4, 16, 64, 256 centred samples.
void further_scales_of_bytes(const Frame& r, const Frame& c, const SsimWindow& window, SsimScratch& scratch,
                             const OfScale& take) {
  int width = r.width, height = r.height, samples = 1;
  for (int scale = 1; scale < 5; ++scale) {
    const int16_t* images[2];
    for (size_t side = 0; side < 2; ++side) {
      auto &to = scratch.halved[side][scale % 2], &from = scratch.halved[side][(scale + 1) % 2];
      to.resize(static_cast<size_t>(width / 2) * static_cast<size_t>(height / 2) * static_cast<size_t>(r.channels));
      if (scale == 1)
        kernels::halve((side == 0 ? r : c).as<uint8_t>(), width, height, r.channels, to.data());
      else
        kernels::halve(from.data(), width, height, r.channels, to.data());
      images[side] = to.data();
    }
    width /= 2, height /= 2, samples *= 4;
    const float n = static_cast<float>(samples);
    take(scale, means_of(ImagePair<int16_t>{images[0], images[1], width, height, r.channels, (r.zero - 128) * n,
                                            r.span * n, 128 * samples},
                         window));
  }
}

/// Wang, Simoncelli, Bovik 2003: contrast terms of four scales and SSIM of the fifth, weighted; a channel each.
std::optional<double> multi_scale(const Frame& reference, const Frame& candidate, const Means& first,
                                  const SsimWindow& window, SsimScratch* scratch) {
  constexpr double kWeights[5] = {.0448, .2856, .3001, .2363, .1333};
  if (std::min(reference.width, reference.height) < kMsSsimSide) return std::nullopt;
  std::vector<double> product(static_cast<size_t>(reference.channels), 1);
  const auto take = [&](int scale, const Means& means) {
    const std::vector<double>& terms = scale == 4 ? means.ssim : means.contrast;
    for (size_t k = 0; k < product.size(); ++k)
      product[k] *= std::pow(std::max(terms[k], 0.0), kWeights[static_cast<size_t>(scale)]);
  };
  take(0, first);
  SsimScratch own;
  if (reference.sample == Sample::u8 && (reference.channels == 1 || reference.channels == 3))
    further_scales_of_bytes(reference, candidate, window, scratch ? *scratch : own, take);
  else
    further_scales(reference, candidate, window, take);
  return mean(product);
}

/// Sums over a block of 4x4: of a, b, a^2 + b^2, ab.
struct Block {
  double a = 0, b = 0, squares = 0, product = 0;
};

template <class T>
double blocks_ssim(const Frame& r, const Frame& c, int channel, double peak) {
  const int columns = r.width / 4, rows = r.height / 4, step = r.channels;
  // FFmpeg rounds its constants to integers.
  const double c1 = std::floor(.01 * .01 * peak * peak * 64 + .5),
               c2 = std::floor(.03 * .03 * peak * peak * 64 * 63 + .5);
  const double scale = peak / static_cast<double>(r.span), zero = r.zero;
  std::vector<Block> above(static_cast<size_t>(columns)), here(above.size());
  double sum = 0;
  for (int y = 0; y < rows; ++y, std::swap(above, here)) {
    std::fill(here.begin(), here.end(), Block{});
    for (int i = 0; i < 4; ++i) {
      const int64_t row = (int64_t{4} * y + i) * r.width * step + channel;
      for (int x = 0; x < columns * 4; ++x) {
        const double a = (r.as<T>()[row + int64_t{x} * step] - zero) * scale,
                     b = (c.as<T>()[row + int64_t{x} * step] - zero) * scale;
        Block& block = here[static_cast<size_t>(x / 4)];
        block.a += a, block.b += b, block.squares += a * a + b * b, block.product += a * b;
      }
    }
    for (size_t x = 0; y > 0 && x + 1 < here.size(); ++x) {
      const Block *p = &above[x], *q = &here[x];
      const double a = p[0].a + p[1].a + q[0].a + q[1].a, b = p[0].b + p[1].b + q[0].b + q[1].b;
      const double variances = 64 * (p[0].squares + p[1].squares + q[0].squares + q[1].squares) - a * a - b * b;
      const double covariance = 64 * (p[0].product + p[1].product + q[0].product + q[1].product) - a * b;
      sum += (2 * a * b + c1) * (2 * covariance + c2) / ((a * a + b * b + c1) * (variances + c2));
    }
  }
  return sum / (static_cast<double>(columns - 1) * (rows - 1));
}

std::optional<double> ffmpeg_ssim(const Frame& r, const Frame& c) {
  if (std::min(r.width, r.height) < smallest_side(SsimKind::ffmpeg)) return std::nullopt;
  double sum = 0;
  for (int k = 0; k < r.channels; ++k)
    sum += r.sample == Sample::u8    ? blocks_ssim<uint8_t>(r, c, k, r.span)
           : r.sample == Sample::u16 ? blocks_ssim<uint16_t>(r, c, k, r.span)
                                     : blocks_ssim<float>(r, c, k, 255);
  return sum / r.channels;
}

}  // namespace

SsimScales gaussian_ssim(const Frame& reference, const Frame& candidate, bool ms_ssim, SsimScratch* scratch) {
  static const SsimWindow window = gaussian_window();
  const Means means = means_of(reference, candidate, window);
  return {mean(means.ssim), ms_ssim ? multi_scale(reference, candidate, means, window, scratch) : std::nullopt};
}

std::optional<double> ssim_of(const Frame& reference, const Frame& candidate, SsimKind kind) {
  static const SsimWindow uniform = uniform_window();
  if (kind == SsimKind::ffmpeg) return ffmpeg_ssim(reference, candidate);
  if (kind == SsimKind::uniform) return mean(means_of(reference, candidate, uniform).ssim);
  return gaussian_ssim(reference, candidate, false).ssim;
}

}  // namespace parity
