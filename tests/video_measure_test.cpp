// What is measured about frames: values computed by hand, and plain loops over the definitions.
#include <doctest/doctest.h>

#include <random>

#include "instruction_sets.hpp"
#include "video/measure.hpp"
#include "video_clips.hpp"

using namespace parity;
using namespace parity::test;
using doctest::Approx;

namespace {

Frame noise(int width, int height, int channels, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> samples(static_cast<size_t>(width * height * channels));
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<uint8_t>((i * 3 / 7 + random() % 60) & 255);
  return rgb_frame(width, height, samples);
}

Frame near(const Frame& of, unsigned seed) {
  std::mt19937 random(seed);
  Frame out = of;
  for (size_t i = 0; i < out.count(); ++i)
    out.as<uint8_t>()[i] =
        static_cast<uint8_t>(std::clamp<int>(out.as<uint8_t>()[i] + static_cast<int>(random() % 21) - 10, 0, 255));
  return out;
}

/// The definition, window by window: Wang et al. 2004, equations 13-16.
double naive_ssim(const Frame& r, const Frame& c, int size, double sigma, bool sample) {
  std::vector<double> weight;
  double sum = 0, total = 0;
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x) {
      const int dy = y - size / 2, dx = x - size / 2;
      weight.push_back(sigma > 0 ? std::exp(-(dx * dx + dy * dy) / (2 * sigma * sigma)) : 1.0);
      sum += weight.back();
    }
  int64_t windows = 0;
  for (int k = 0; k < r.channels; ++k)
    for (int y0 = 0; y0 + size <= r.height; ++y0)
      for (int x0 = 0; x0 + size <= r.width; ++x0, ++windows) {
        double ma = 0, mb = 0, aa = 0, bb = 0, ab = 0;
        for (int pass = 0; pass < 2; ++pass)
          for (int y = 0; y < size; ++y)
            for (int x = 0; x < size; ++x) {
              const double w =
                  weight[static_cast<size_t>(y) * static_cast<size_t>(size) + static_cast<size_t>(x)] / sum;
              const size_t at = static_cast<size_t>((int64_t{y0 + y} * r.width + x0 + x) * r.channels + k);
              const double a = r.as<uint8_t>()[at] / 255.0, b = c.as<uint8_t>()[at] / 255.0;
              if (pass == 0) ma += w * a, mb += w * b;
              if (pass == 1)
                aa += w * (a - ma) * (a - ma), bb += w * (b - mb) * (b - mb), ab += w * (a - ma) * (b - mb);
            }
        const double n = size * size, f = sample ? n / (n - 1) : 1;
        total += (2 * ma * mb + 1e-4) * (2 * f * ab + 9e-4) / ((ma * ma + mb * mb + 1e-4) * (f * aa + f * bb + 9e-4));
      }
  return total / static_cast<double>(windows);
}

}  // namespace

TEST_CASE("video: the numbers of one pixel, by hand") {
  const Frame r = rgb_frame(1, 1, {10, 20, 30}), c = rgb_frame(1, 1, {13, 16, 30});
  const FrameMetrics m = measure_frame(r, c, nullptr, nullptr, {}).metrics;
  CHECK(m.mse == Approx(25.0 / 3 / 65025).epsilon(1e-12));
  CHECK(*m.psnr == Approx(-10 * std::log10(25.0 / 3 / 65025)).epsilon(1e-12));
  CHECK(m.mean_abs == Approx(7.0 / 3 / 255).epsilon(1e-12));
  CHECK(m.max_abs == Approx(4.0 / 255).epsilon(1e-12));
  CHECK(m.p95_abs == Approx(3.9 / 255).epsilon(1e-12));  // ranks 0, 3, 4 at position 1.9
  CHECK(m.p99_abs == Approx(3.98 / 255).epsilon(1e-12));
  CHECK(*m.mean_rel == Approx((3.0 / 10 + 4.0 / 20) / 3).epsilon(1e-7));
  CHECK(*m.rel_l2 == Approx(5 / std::sqrt(1400)).epsilon(1e-12));
  CHECK(m.equal_share == Approx(1.0 / 3));
  REQUIRE(m.bias.size() == 3);
  CHECK(m.bias[0] == Approx(3.0 / 255).epsilon(1e-12));
  CHECK(m.bias[1] == Approx(-4.0 / 255).epsilon(1e-12));
  CHECK(m.bias[2] == 0);
  CHECK_FALSE(m.ssim);  // smaller than the window
  CHECK_FALSE(m.ms_ssim);
  CHECK_FALSE(m.flicker);
}

TEST_CASE("video: identical frames have no PSNR and an SSIM of 1") {
  const Frame r = noise(40, 30, 3, 1);
  const FrameMetrics m = measure_frame(r, r, nullptr, nullptr, {}).metrics;
  CHECK(m.identical);
  CHECK_FALSE(m.psnr);
  CHECK(m.mse == 0);
  CHECK(*m.ssim == Approx(1).epsilon(1e-7));
  CHECK(m.equal_share == 1);
}

TEST_CASE("video: flicker is what the difference changes from frame to frame") {
  const Frame r0 = rgb_frame(2, 1, {10, 10}), r1 = rgb_frame(2, 1, {20, 10}), c0 = rgb_frame(2, 1, {15, 10}),
              c1 = rgb_frame(2, 1, {25, 14});
  const FrameMetrics m = measure_frame(r1, c1, &r0, &c0, {}).metrics;
  CHECK(*m.flicker == Approx(std::sqrt(16.0 / 2) / 255));  // the constant 5 of the first pixel does not flicker
  CHECK(*m.motion_reference == Approx(std::sqrt(100.0 / 2) / 255));
  CHECK(*m.motion_candidate == Approx(std::sqrt(116.0 / 2) / 255));
}

TEST_CASE("video: the largest differences fit the sums of every instruction set") {
  // Black to white and back in every pixel: differences of 255, motion of 510; a last red sample of its own.
  for (const int channels : {1, 3}) {
    const int width = 211, height = 113, count = width * height * channels;
    const auto flat = [&](uint8_t value) {
      return rgb_frame(width, height, std::vector<uint8_t>(static_cast<size_t>(count), value));
    };
    const Frame black = flat(0), white = flat(255);
    Frame c = white;
    c.as<uint8_t>()[count - channels] = 1;
    on_every_instruction_set([&] {
      const FrameMetrics m = measure_frame(black, c, &white, &black, {}).metrics;
      const double n = count, off = 255.0 * 255, rest = n - 1;
      CHECK(m.mse == Approx((rest * off + 1) / n / off).epsilon(1e-12));
      CHECK(m.max_abs == 1);
      CHECK(*m.mean_rel == Approx((rest * 255 + 1) / n).epsilon(1e-6));
      CHECK(m.bias[0] == Approx(1 - 254.0 / 255 * channels / n).epsilon(1e-12));
      CHECK(m.bias.back() == (channels == 3 ? 1 : m.bias[0]));
      CHECK(*m.flicker == Approx(std::sqrt((rest * 4 * off + 256.0 * 256) / n) / 255).epsilon(1e-12));
      CHECK(*m.motion_reference == 1);
      CHECK(*m.motion_candidate == Approx(std::sqrt((rest * off + 1) / n) / 255).epsilon(1e-12));
    });
  }
}

TEST_CASE("video: integer, 16-bit and float frames give the same numbers") {
  for (const int channels : {1, 3, 4}) {
    const Frame r = noise(37, 29, channels, 3), c = near(r, 4), r0 = noise(37, 29, channels, 5), c0 = near(r0, 6);
    const FrameMetrics bytes = measure_frame(r, c, &r0, &c0, {}).metrics;
    for (const Sample sample : {Sample::u16, Sample::f32}) {
      const auto converted = [&](const Frame& from) {
        Frame out;
        out.shape(from.width, from.height, from.channels, sample);
        out.span = sample == Sample::u16 ? 65535 : 1;
        for (size_t i = 0; i < from.count(); ++i) {
          if (sample == Sample::u16) out.as<uint16_t>()[i] = static_cast<uint16_t>(from.as<uint8_t>()[i] * 257);
          if (sample == Sample::f32) out.as<float>()[i] = static_cast<float>(from.as<uint8_t>()[i]) / 255;
        }
        return out;
      };
      const Frame a = converted(r), b = converted(c), a0 = converted(r0), b0 = converted(c0);
      const FrameMetrics m = measure_frame(a, b, &a0, &b0, {}).metrics;
      CHECK(m.mse == Approx(bytes.mse).epsilon(1e-6));
      CHECK(m.mean_abs == Approx(bytes.mean_abs).epsilon(1e-6));
      CHECK(m.p95_abs == Approx(bytes.p95_abs).epsilon(1e-5));
      CHECK(*m.mean_rel == Approx(*bytes.mean_rel).epsilon(1e-5));
      CHECK(*m.rel_l2 == Approx(*bytes.rel_l2).epsilon(1e-6));
      CHECK(*m.flicker == Approx(*bytes.flicker).epsilon(1e-5));
      CHECK(*m.ssim == Approx(*bytes.ssim).epsilon(1e-6));
      CHECK(m.bias.back() == Approx(bytes.bias.back()).epsilon(1e-4));
      // Unlike kinds are compared in [0, 1].
      CHECK(measure_frame(r, b, &r0, &b0, {}).metrics.mse == Approx(bytes.mse).epsilon(1e-5));
    }
  }
}

TEST_CASE("video: SSIM against the definition, window by window") {
  for (const auto [width, height, channels] : {std::array{11, 11, 1}, std::array{23, 17, 3}, std::array{301, 13, 3},
                                               std::array{64, 48, 1}, std::array{107, 15, 3}}) {
    const Frame r = noise(width, height, channels, 7), c = near(r, 8);
    const double gaussian = naive_ssim(r, c, 11, 1.5, false), uniform = naive_ssim(r, c, 7, 0, true);
    on_every_instruction_set([&] {
      CHECK(*ssim_of(r, c, SsimKind::gaussian) == Approx(gaussian).epsilon(1e-6));
      CHECK(*ssim_of(r, c, SsimKind::uniform) == Approx(uniform).epsilon(1e-6));
    });
  }
  // Without variance only the means are left: (2 ab + C1) / (a^2 + b^2 + C1).
  const Frame a = rgb_frame(16, 16, std::vector<uint8_t>(256, 51)),
              b = rgb_frame(16, 16, std::vector<uint8_t>(256, 102));
  for (const SsimKind kind : {SsimKind::gaussian, SsimKind::uniform, SsimKind::ffmpeg})
    CHECK(*ssim_of(a, b, kind) == Approx((.16 + 1e-4) / (.04 + .16 + 1e-4)).epsilon(1e-4));
  CHECK_FALSE(ssim_of(noise(64, 10, 3, 1), noise(64, 10, 3, 2), SsimKind::gaussian));
  CHECK_FALSE(ssim_of(noise(6, 60, 3, 1), noise(6, 60, 3, 2), SsimKind::uniform));
  CHECK_FALSE(ssim_of(noise(64, 7, 3, 1), noise(64, 7, 3, 2), SsimKind::ffmpeg));
}

TEST_CASE("video: SSIM of faint noise on bright and dark pictures, where variances are small differences of squares") {
  for (const int level : {3, 125, 252}) {
    Frame r = noise(61, 53, 3, 5), c = noise(61, 53, 3, 6);
    for (Frame* frame : {&r, &c})
      for (size_t i = 0; i < frame->count(); ++i)
        frame->as<uint8_t>()[i] = static_cast<uint8_t>(level - 3 + frame->as<uint8_t>()[i] % 7);
    const double gaussian = naive_ssim(r, c, 11, 1.5, false), uniform = naive_ssim(r, c, 7, 0, true);
    CAPTURE(level);
    on_every_instruction_set([&] {
      // Measured: 1.2e-6; without vectors, in fp32 all the way, 3.7e-6. Weights whose sum is off by 1e-7: 8e-6.
      const double most = hwy::SupportedTargets() == HWY_SCALAR ? 4e-6 : 1.5e-6;
      CHECK(std::abs(*ssim_of(r, c, SsimKind::gaussian) - gaussian) < most);
      CHECK(std::abs(*ssim_of(r, c, SsimKind::uniform) - uniform) < most);
    });
  }
}

TEST_CASE("video: MS-SSIM needs five scales, is 1 for equal frames and falls with blur") {
  CHECK_FALSE(gaussian_ssim(noise(175, 200, 1, 1), noise(175, 200, 1, 1), true).ms_ssim);
  const Frame r = noise(176, 176, 1, 1);
  CHECK(*gaussian_ssim(r, r, true).ms_ssim == Approx(1).epsilon(1e-6));
  const double little = *gaussian_ssim(r, near(r, 2), true).ms_ssim,
               much = *gaussian_ssim(r, noise(176, 176, 1, 9), true).ms_ssim;
  CHECK(little < 1);
  CHECK(much < little);
  // Bytes are halved and summed in integers, floats in fp32: the same numbers, also at the ends of the range.
  for (const auto [width, height, channels] : {std::array{177, 190, 3}, std::array{301, 176, 1}})
    for (const int level : {-1, 0, 255}) {
      Frame a = noise(width, height, channels, 3), b = near(a, 4), unit_a, unit_b;
      for (size_t i = 0; level >= 0 && i < a.count(); ++i)
        if (i % 1000 != 0) a.as<uint8_t>()[i] = b.as<uint8_t>()[i] = static_cast<uint8_t>(level);
      to_unit(a, unit_a), to_unit(b, unit_b);
      const SsimScales bytes = gaussian_ssim(a, b, true), floats = gaussian_ssim(unit_a, unit_b, true);
      CHECK(*bytes.ssim == Approx(*floats.ssim).epsilon(1e-6));
      CHECK(*bytes.ms_ssim == Approx(*floats.ms_ssim).epsilon(1e-5));
    }
}

TEST_CASE("video: percentiles of a clip are those of all its differences") {
  DifferencePool integers, floats;
  Differences d;
  d.histogram = {90, 5, 4, 1};
  d.unit = 1.0 / 255;
  integers.add(d);
  CHECK(*integers.percentile(.95) == Approx(1.05 / 255));  // ranks 94 (1) and 95 (2) at 94.05
  CHECK(*integers.percentile(.99) == Approx(2.01 / 255));
  for (int i = 0; i < 100; ++i) floats.add({{}, {static_cast<float>(i)}, 1});
  CHECK(*floats.percentile(.95) == Approx(94.05));
  CHECK(floats.exact());
  Differences many;
  many.magnitudes.resize(DifferencePool::kExactFloats / 2 + 1);
  for (size_t i = 0; i < many.magnitudes.size(); ++i)
    many.magnitudes[i] = static_cast<float>(i) / static_cast<float>(many.magnitudes.size());
  DifferencePool large;
  large.add(many);
  large.add(many);
  CHECK_FALSE(large.exact());
  CHECK(*large.percentile(.95) == Approx(.95).epsilon(1.0 / 8192));
}
