#include "ops/causal_conv3d.hpp"

#include <algorithm>

#include "ops/own.hpp"

namespace parity {
namespace ops {
namespace {

// How many frames of zeros stand for those that are not there before the first.
int64_t zero_frames(const at::Tensor& weight, const at::Tensor& before, int64_t time_stride) {
  const int64_t kt = weight.size(2), known = before.defined() ? before.size(2) : 0;
  return time_stride > 1 ? 0 : std::max<int64_t>(0, kt - 1 - known);
}

at::Tensor joined(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& before) {
  return before.defined() && weight.size(2) > 1 ? at::cat({before, x}, 2) : x;
}

// x after the frames before it, zeros around: what the kernel is moved over.
at::Tensor padded(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& before, int64_t time_stride) {
  const int64_t ph = (weight.size(3) - 1) / 2, pw = (weight.size(4) - 1) / 2;
  return at::constant_pad_nd(joined(x, weight, before), {pw, pw, ph, ph, zero_frames(weight, before, time_stride), 0});
}

// The same over time alone.
at::Tensor frames_seen(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& before, int64_t time_stride) {
  const at::Tensor frames = joined(x, weight, before);
  const int64_t zeros = zero_frames(weight, before, time_stride);
  return zeros > 0 ? at::constant_pad_nd(frames, {0, 0, 0, 0, zeros, 0}) : frames;
}

}  // namespace

at::Tensor causal_conv3d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                         const at::Tensor& before, int64_t time_stride) {
  return at::conv3d(padded(x, weight, before, time_stride), weight, bias, {time_stride, 1, 1});
}

at::Tensor causal_conv3d_at_once(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                 const at::Tensor& before, int64_t time_stride) {
  const at::Tensor frames = frames_seen(x, weight, before, time_stride);
  return at::conv3d(frames, weight, bias, {time_stride, 1, 1}, {0, (weight.size(3) - 1) / 2, (weight.size(4) - 1) / 2});
}

at::Tensor own_causal_conv3d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                             const at::Tensor& before, int64_t time_stride) {
  return own_conv(padded(x, weight, before, time_stride), weight, bias, {time_stride, 1, 1});
}

}  // namespace ops

namespace {

// A voxel of `x`, or of `before` for negative frames; outside of both, zero.
struct Seen {
  at::TensorAccessor<double, 5> x;
  const at::Tensor& before;

  double at(int64_t b, int64_t channel, int64_t t, int64_t h, int64_t w) const {
    if (h < 0 || w < 0 || h >= x.size(3) || w >= x.size(4)) return 0;
    if (t >= 0) return x[b][channel][t][h][w];
    if (!before.defined() || t < -before.size(2)) return 0;
    return before.accessor<double, 5>()[b][channel][before.size(2) + t][h][w];
  }
};

// Output frame i ends at input frame i * stride + `newest`.
at::Tensor reference_with(const OpCase& c, const at::Tensor& before, int64_t frames, int64_t stride, int64_t newest) {
  const Seen seen{c.in[0].accessor<double, 5>(), before};
  const auto ws = c.in[1].accessor<double, 5>();
  const auto bias = c.in[2].accessor<double, 1>();
  const int64_t kt = ws.size(2), kh = ws.size(3), kw = ws.size(4);
  auto out = at::empty({c.in[0].size(0), ws.size(0), frames, c.in[0].size(3), c.in[0].size(4)}, at::kDouble);
  auto ys = out.accessor<double, 5>();
  for (int64_t i = 0; i < out.numel(); ++i) {
    int64_t rest = i, at[5];
    for (int d = 4; d >= 0; --d) at[d] = rest % out.size(d), rest /= out.size(d);
    long double sum = bias[at[1]];
    for (int64_t channel = 0; channel < ws.size(1); ++channel)
      for (int64_t tap = 0; tap < kt * kh * kw; ++tap) {
        const int64_t t = tap / (kh * kw), h = tap / kw % kh, w = tap % kw;
        sum += static_cast<long double>(ws[at[1]][channel][t][h][w]) *
               seen.at(at[0], channel, at[2] * stride + newest + t - (kt - 1), at[3] + h - kh / 2, at[4] + w - kw / 2);
      }
    ys[at[0]][at[1]][at[2]][at[3]][at[4]] = static_cast<double>(sum);
  }
  return out;
}

at::Tensor reference(const OpCase& c) { return reference_with(c, {}, c.in[0].size(2), 1, 0); }
at::Tensor reference_after(const OpCase& c) { return reference_with(c, c.in[3], c.in[0].size(2), 1, 0); }
// One frame before, three taps: the first result ends at x's second frame.
at::Tensor reference_halving(const OpCase& c) { return reference_with(c, c.in[3], c.in[0].size(2) / 2, 2, 1); }

at::Tensor run(const OpCase& c) { return ops::causal_conv3d(c.in[0], c.in[1], c.in[2], {}, 1); }
at::Tensor run_after(const OpCase& c) { return ops::causal_conv3d(c.in[0], c.in[1], c.in[2], c.in[3], 1); }
at::Tensor run_at_once(const OpCase& c) { return ops::causal_conv3d_at_once(c.in[0], c.in[1], c.in[2], {}, 1); }
at::Tensor run_at_once_after(const OpCase& c) {
  return ops::causal_conv3d_at_once(c.in[0], c.in[1], c.in[2], c.in[3], 1);
}
at::Tensor run_at_once_halving(const OpCase& c) {
  return ops::causal_conv3d_at_once(c.in[0], c.in[1], c.in[2], c.in[3], 2);
}
at::Tensor run_own(const OpCase& c) { return ops::own_causal_conv3d(c.in[0], c.in[1], c.in[2], {}, 1); }
at::Tensor run_own_after(const OpCase& c) { return ops::own_causal_conv3d(c.in[0], c.in[1], c.in[2], c.in[3], 1); }
at::Tensor run_own_halving(const OpCase& c) { return ops::own_causal_conv3d(c.in[0], c.in[1], c.in[2], c.in[3], 2); }
at::Tensor run_halving(const OpCase& c) { return ops::causal_conv3d(c.in[0], c.in[1], c.in[2], c.in[3], 2); }

std::vector<OpCase> cases() {
  return {{"3x3x3", {spread({2, 6, 4, 5, 7}, 1), spread({9, 6, 3, 3, 3}, 2, 0.08), spread({9}, 3, 0.2)}},
          {"one frame", {spread({1, 32, 1, 9, 5}, 4), spread({16, 32, 3, 3, 3}, 5, 0.04), spread({16}, 6, 0.2)}},
          {"1x1x1", {spread({2, 6, 3, 3, 5}, 7), spread({12, 6, 1, 1, 1}, 8, 0.4), spread({12}, 9, 0.2)}}};
}
std::vector<OpCase> cases_after() {
  auto all = cases();
  all[0].in.push_back(spread({2, 6, 2, 5, 7}, 10));
  all[1].in.push_back(spread({1, 32, 1, 9, 5}, 11));  // shorter than the kernel reaches: a zero frame before it
  all.pop_back();
  all.push_back({"time alone",
                 {spread({2, 6, 1, 3, 5}, 12), spread({12, 6, 3, 1, 1}, 13, 0.25), spread({12}, 14, 0.2),
                  spread({2, 6, 2, 3, 5}, 15)}});
  return all;
}
std::vector<OpCase> cases_halving() {
  return {{"four frames after one",
           {spread({2, 6, 4, 5, 3}, 1), spread({6, 6, 3, 1, 1}, 2, 0.25), spread({6}, 3, 0.2),
            spread({2, 6, 1, 5, 3}, 4)}}};
}

}  // namespace

const OpRow& causal_conv3d_row() {
  // Worst measured: fp64 4.9 u at 'one frame', fp32 3.2 u at '3x3x3', bf16 0.45 u at '1x1x1'.
  // Largest ULP distance there, fp32: [1348] got 0x1.0f23p-10 want 0x1.0f355007c3e18p-10 ('3x3x3').
  // Own, on an emulated nehalem: fp64 3.5 u, fp32 2.4 u, bf16 0.45 u (scripts/op_bounds).
  static const OpRow row{
      "causal_conv3d",
      reference,
      run,
      cases,
      {{at::kDouble, {}, 10}, {at::kFloat, {}, 7}, {at::kBFloat16, {}, 0.6}},
      {{"at once", run_at_once, {{at::kDouble, {}, 10}, {at::kFloat, {}, 7}, {at::kBFloat16, {}, 0.6}}},
       {"own", run_own, {{at::kDouble, {}, 7}, {at::kFloat, {}, 4.9}, {at::kBFloat16, {}, 0.6}}}}};
  return row;
}

const OpRow& causal_conv3d_after_row() {
  // Worst measured: fp64 7 u at 'one frame', fp32 3.4 u at '3x3x3', bf16 0.45 u at 'time alone'.
  // Largest ULP distance there, fp32: [166] got -0x1p-25 want -0x1.5417766bbap-24 ('one frame').
  // Own, on an emulated nehalem: fp64 4.9 u, fp32 3.5 u, bf16 0.45 u (scripts/op_bounds).
  static const OpRow row{
      "causal_conv3d after a cache",
      reference_after,
      run_after,
      cases_after,
      {{at::kDouble, {}, 15}, {at::kFloat, {}, 7}, {at::kBFloat16, {}, 0.6}},
      {{"at once", run_at_once_after, {{at::kDouble, {}, 15}, {at::kFloat, {}, 7}, {at::kBFloat16, {}, 0.6}}},
       {"own", run_own_after, {{at::kDouble, {}, 9.9}, {at::kFloat, {}, 7.1}, {at::kBFloat16, {}, 0.6}}}}};
  return row;
}

const OpRow& causal_conv3d_halving_row() {
  // Worst measured: fp64 1.5 u, fp32 1.3 u, bf16 0.41 u.
  // Largest ULP distance there, fp32: [310] got -0x1.bf16p-12 want -0x1.bf0d7be6bc48p-12.
  // Own: fp64 1.2 u, fp32 1.3 u, bf16 0.4 u (scripts/op_bounds).
  static const OpRow row{
      "causal_conv3d halving time",
      reference_halving,
      run_halving,
      cases_halving,
      {{at::kDouble, {}, 3}, {at::kFloat, {}, 3}, {at::kBFloat16, {}, 0.6}},
      {{"at once", run_at_once_halving, {{at::kDouble, {}, 3}, {at::kFloat, {}, 3}, {at::kBFloat16, {}, 0.6}}},
       {"own", run_own_halving, {{at::kDouble, {}, 2.5}, {at::kFloat, {}, 2.6}, {at::kBFloat16, {}, 0.6}}}}};
  return row;
}

}  // namespace parity
