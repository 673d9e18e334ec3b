#include "ops/linear.hpp"

#include "ops/own.hpp"

namespace parity {
namespace ops {

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::linear(x, weight, bias);
}

at::Tensor own_linear_nd(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  auto shape = x.sizes().vec();
  shape.back() = weight.size(0);
  return own_linear(x.reshape({-1, x.size(-1)}), weight.contiguous(), bias).view(shape);
}

}  // namespace ops

namespace {

at::Tensor reference(const OpCase& c) {
  const auto x = c.in[0].reshape({-1, c.in[0].size(-1)}), &w = c.in[1], &b = c.in[2];
  const auto out = at::empty({x.size(0), w.size(0)}, at::kDouble);
  const auto xs = x.accessor<double, 2>(), ws = w.accessor<double, 2>();
  const auto bs = b.accessor<double, 1>();
  auto ys = out.accessor<double, 2>();
  for (int64_t i = 0; i < x.size(0); ++i)
    for (int64_t o = 0; o < w.size(0); ++o) {
      long double sum = bs[o];
      for (int64_t k = 0; k < w.size(1); ++k) sum += static_cast<long double>(xs[i][k]) * ws[o][k];
      ys[i][o] = static_cast<double>(sum);
    }
  auto shape = c.in[0].sizes().vec();
  shape.back() = w.size(0);
  return out.view(shape);
}

at::Tensor run(const OpCase& c) { return ops::linear(c.in[0], c.in[1], c.in[2]); }

at::Tensor run_own(const OpCase& c) {
  auto shape = c.in[0].sizes().vec();
  shape.back() = c.in[1].size(0);
  return ops::own_linear(c.in[0].reshape({-1, c.in[0].size(-1)}), c.in[1], c.in[2]).view(shape);
}

// The slice that cuts image from text tokens: not contiguous as soon as there are two samples.
at::Tensor run_apart(const OpCase& c) {
  const auto x = at::cat({c.in[0], c.in[0]}, 1).slice(1, 0, c.in[0].size(1));
  return ops::linear(x, c.in[1], c.in[2]);
}

std::vector<OpCase> cases() {
  return {{"one row", {spread({1, 256}, 1), spread({64, 256}, 2, 0.06), spread({64}, 3, 0.2)}},
          {"tokens", {spread({2, 33, 96}, 4), spread({160, 96}, 5, 0.1), spread({160}, 6, 0.2)}},
          {"long sums", {spread({1, 20, 8960}, 7), spread({24, 8960}, 8, 0.01), spread({24}, 9, 0.2)}}};
}
std::vector<OpCase> two_samples() {
  return {{"two samples", {spread({2, 33, 96}, 4), spread({160, 96}, 5, 0.1), spread({160}, 6, 0.2)}}};
}

}  // namespace

const OpRow& linear_row() {
  // Worst measured: fp64 31 u at 'long sums', fp32 4.8 u at 'long sums', bf16 0.43 u at 'tokens'; own: fp64
  // 7.1 u, fp32 5.2 u, both at 'long sums' (32 partial sums of fp32), bf16 0.43 u. With one vector of partial sums
  // instead of two it was 10 u and 6.8 u, and with vectors of 128 bits, on an emulated Nehalem, fp64 18.5 u, fp32 14.2
  // u (scripts/op_bounds; bounds are twice the worst of all its settings). Largest ULP distance there, fp32: [446] got
  // -0x1.60bep-11 want -0x1.607363fb71e52p-11 ('long sums').
  static const OpRow row{"linear",
                         reference,
                         run,
                         cases,
                         {{at::kDouble, {}, 62}, {at::kFloat, {}, 10}, {at::kBFloat16, {}, 0.6}},
                         {{"own", run_own, {{at::kDouble, {}, 37}, {at::kFloat, {}, 28}, {at::kBFloat16, {}, 0.6}}}}};
  return row;
}

const OpRow& linear_apart_row() {
  // Worst measured: fp64 2.9 u at 'two samples', fp32 2.9 u at 'two samples', bf16 0.59 u at 'two samples'.
  // Largest ULP distance there, fp32: [9470] got -0x1.4948p-14 want -0x1.490ba56003fp-14 ('two samples').
  static const OpRow row{"linear, bias apart",
                         reference,
                         run_apart,
                         two_samples,
                         {{at::kDouble, {}, 6}, {at::kFloat, {}, 6}, {at::kBFloat16, {}, 0.8}}};
  return row;
}

}  // namespace parity
