#include "ops/resample.hpp"

#include "ops/own.hpp"

#include "core/dtype_kind.hpp"

namespace parity {
namespace ops {

at::Tensor double_pixels(const at::Tensor& x) {
  const auto wide = is_half(x.scalar_type()) ? x.to(at::kFloat) : x;
  return at::_upsample_nearest_exact2d(wide, {2 * x.size(2), 2 * x.size(3)}, 2.0, 2.0).to(x.scalar_type());
}

at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                  int64_t padding) {
  return at::conv2d(x, weight, bias, stride, padding);
}

at::Tensor own_conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                      int64_t padding) {
  return own_conv(at::constant_pad_nd(x, {padding, padding, padding, padding}), weight, bias, {stride, stride});
}

at::Tensor pad_below_right(const at::Tensor& x) { return at::constant_pad_nd(x, {0, 1, 0, 1}); }

at::Tensor interleave_frames(const at::Tensor& x) {
  const int64_t b = x.size(0), c = x.size(1) / 2, t = x.size(2), h = x.size(3), w = x.size(4);
  const auto halves = x.reshape({b, 2, c, t, h, w});
  return at::stack({halves.select(1, 0), halves.select(1, 1)}, 3).reshape({b, c, 2 * t, h, w});
}

}  // namespace ops

namespace {

at::Tensor doubled_reference(const OpCase& c) {
  const auto& x = c.in[0];
  auto out = at::empty({x.size(0), x.size(1), 2 * x.size(2), 2 * x.size(3)}, at::kDouble);
  const auto xs = x.accessor<double, 4>();
  auto ys = out.accessor<double, 4>();
  for (int64_t i = 0; i < out.numel(); ++i) {
    const int64_t w = i % out.size(3), h = i / out.size(3) % out.size(2), plane = i / (out.size(3) * out.size(2));
    const int64_t b = plane / x.size(1), channel = plane % x.size(1);
    ys[b][channel][h][w] = xs[b][channel][h / 2][w / 2];
  }
  return out;
}

// `before` zeros above and at the left; what lies below and at the right of the picture is zero too.
at::Tensor conv_reference(const OpCase& c, int64_t stride, int64_t before, int64_t height, int64_t width) {
  const auto xs = c.in[0].accessor<double, 4>(), ws = c.in[1].accessor<double, 4>();
  auto out = at::empty({xs.size(0), ws.size(0), height, width}, at::kDouble);
  auto ys = out.accessor<double, 4>();
  for (int64_t i = 0; i < out.numel(); ++i) {
    int64_t rest = i, at[4];
    for (int d = 3; d >= 0; --d) at[d] = rest % out.size(d), rest /= out.size(d);
    long double sum = c.in[2].accessor<double, 1>()[at[1]];
    for (int64_t channel = 0; channel < ws.size(1); ++channel)
      for (int64_t tap = 0; tap < ws.size(2) * ws.size(3); ++tap) {
        const int64_t h = at[2] * stride + tap / ws.size(3) - before, w = at[3] * stride + tap % ws.size(3) - before;
        if (h < 0 || w < 0 || h >= xs.size(2) || w >= xs.size(3)) continue;
        sum +=
            static_cast<long double>(xs[at[0]][channel][h][w]) * ws[at[1]][channel][tap / ws.size(3)][tap % ws.size(3)];
      }
    ys[at[0]][at[1]][at[2]][at[3]] = static_cast<double>(sum);
  }
  return out;
}
at::Tensor same_reference(const OpCase& c) {
  return conv_reference(c, 1, c.in[1].size(2) / 2, c.in[0].size(2), c.in[0].size(3));
}
at::Tensor halved_reference(const OpCase& c) {
  return conv_reference(c, 2, 0, c.in[0].size(2) / 2, c.in[0].size(3) / 2);
}

at::Tensor interleaved_reference(const OpCase& c) {
  const auto& x = c.in[0];
  const int64_t channels = x.size(1) / 2, plane = x.size(3) * x.size(4);
  auto out = at::empty({x.size(0), channels, 2 * x.size(2), x.size(3), x.size(4)}, at::kDouble);
  const double* from = x.const_data_ptr<double>();
  double* to = out.data_ptr<double>();
  for (int64_t row = 0; row < x.size(0) * channels * 2 * x.size(2); ++row) {
    const int64_t t = row % (2 * x.size(2)), channel = row / (2 * x.size(2)) % channels,
                  b = row / (2 * x.size(2) * channels);
    const int64_t source = (b * x.size(1) + t % 2 * channels + channel) * x.size(2) + t / 2;
    std::copy_n(from + source * plane, plane, to + row * plane);
  }
  return out;
}

at::Tensor run_doubled(const OpCase& c) { return ops::double_pixels(c.in[0]); }
at::Tensor run_same(const OpCase& c) { return ops::conv2d(c.in[0], c.in[1], c.in[2], 1, c.in[1].size(2) / 2); }
at::Tensor run_halved(const OpCase& c) { return ops::conv2d(ops::pad_below_right(c.in[0]), c.in[1], c.in[2], 2, 0); }
at::Tensor run_own(const OpCase& c) { return ops::own_conv2d(c.in[0], c.in[1], c.in[2], 1, c.in[1].size(2) / 2); }
at::Tensor run_own_halved(const OpCase& c) {
  return ops::own_conv2d(ops::pad_below_right(c.in[0]), c.in[1], c.in[2], 2, 0);
}
at::Tensor run_interleaved(const OpCase& c) { return ops::interleave_frames(c.in[0]); }

std::vector<OpCase> pictures() { return {{"odd sizes", {spread({2, 6, 5, 3}, 1)}}}; }
std::vector<OpCase> convolutions() {
  return {{"3x3", {spread({2, 6, 5, 7}, 1), spread({9, 6, 3, 3}, 2, 0.13), spread({9}, 3, 0.2)}},
          {"1x1, many channels", {spread({1, 384, 5, 3}, 4), spread({96, 384, 1, 1}, 5, 0.05), spread({96}, 6, 0.2)}}};
}
std::vector<OpCase> halvings() {
  return {{"odd and even", {spread({2, 6, 17, 10}, 1), spread({6, 6, 3, 3}, 2, 0.13), spread({6}, 3, 0.2)}}};
}
std::vector<OpCase> videos() { return {{"odd sizes", {spread({2, 6, 3, 5, 3}, 1)}}}; }

// Numbers that are only moved must not change at all.
std::vector<OpBound> exactly() { return {{at::kDouble, 0, {}}, {at::kFloat, 0, {}}, {at::kBFloat16, 0, {}}}; }

}  // namespace

const OpRow& double_pixels_row() {
  static const OpRow row{"double_pixels", doubled_reference, run_doubled, pictures, exactly()};
  return row;
}

const OpRow& conv2d_row() {
  // Worst measured: fp64 5.9 u, fp32 4.1 u, both at '1x1, many channels', bf16 0.43 u at '3x3'.
  // Largest ULP distance there, fp32: [1242] got -0x1.3054p-10 want -0x1.30614ce18328dp-10 ('1x1, many channels').
  // Own, on an emulated nehalem: fp64 4.3 u, fp32 3 u, bf16 0.43 u (scripts/op_bounds).
  static const OpRow row{"conv2d",
                         same_reference,
                         run_same,
                         convolutions,
                         {{at::kDouble, {}, 12}, {at::kFloat, {}, 9}, {at::kBFloat16, {}, 0.6}},
                         {{"own", run_own, {{at::kDouble, {}, 8.6}, {at::kFloat, {}, 6.1}, {at::kBFloat16, {}, 0.6}}}}};
  return row;
}

const OpRow& conv2d_halving_row() {
  // Worst measured: fp64 2 u, fp32 2.2 u, bf16 0.44 u.
  // Largest ULP distance there, fp32: [204] got 0x1.657ap-9 want 0x1.6575af8f4181p-9.
  // Own: fp64 1.8 u, fp32 1.4 u, bf16 0.44 u (scripts/op_bounds).
  static const OpRow row{
      "conv2d halving",
      halved_reference,
      run_halved,
      halvings,
      {{at::kDouble, {}, 5}, {at::kFloat, {}, 5}, {at::kBFloat16, {}, 0.6}},
      {{"own", run_own_halved, {{at::kDouble, {}, 3.6}, {at::kFloat, {}, 2.9}, {at::kBFloat16, {}, 0.6}}}}};
  return row;
}

const OpRow& interleave_frames_row() {
  static const OpRow row{"interleave_frames", interleaved_reference, run_interleaved, videos, exactly()};
  return row;
}

}  // namespace parity
