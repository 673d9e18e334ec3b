#include "ops/layer_norm.hpp"

namespace parity {
namespace ops {

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps,
                      at::ScalarType compute, at::ScalarType out) {
  const auto cast = [compute](const at::Tensor& t) { return t.defined() ? t.to(compute) : t; };
  return at::layer_norm(x.to(compute), {x.size(-1)}, cast(weight), cast(bias), eps).to(out);
}

}  // namespace ops

namespace {

constexpr double kEps = 1e-6;

// Two passes, as the definition says: mean, then mean square distance (biased), then (x - mean) / sqrt(var + eps) * w +
// b.
at::Tensor reference(const OpCase& c) {
  const auto x = c.in[0].reshape({-1, c.in[0].size(-1)});
  const auto out = at::empty_like(x);
  const int64_t dim = x.size(1);
  const auto xs = x.accessor<double, 2>();
  auto ys = out.accessor<double, 2>();
  for (int64_t i = 0; i < x.size(0); ++i) {
    long double mean = 0, square = 0;
    for (int64_t k = 0; k < dim; ++k) mean += static_cast<long double>(xs[i][k]) / dim;
    for (int64_t k = 0; k < dim; ++k) square += (xs[i][k] - mean) * (xs[i][k] - mean);
    const long double scale = 1 / std::sqrt(square / dim + kEps);
    for (int64_t k = 0; k < dim; ++k) {
      ys[i][k] = static_cast<double>((xs[i][k] - mean) * scale);
      if (c.in.size() > 1) ys[i][k] = ys[i][k] * c.in[1].accessor<double, 1>()[k] + c.in[2].accessor<double, 1>()[k];
    }
  }
  return out.view(c.in[0].sizes());
}

at::ScalarType at_least_float(at::ScalarType dtype) { return dtype == at::kDouble ? at::kDouble : at::kFloat; }

at::Tensor run_with(const OpCase& c, at::ScalarType compute, at::ScalarType out) {
  const bool affine = c.in.size() > 1;
  return ops::layer_norm(c.in[0], affine ? c.in[1] : at::Tensor(), affine ? c.in[2] : at::Tensor(), kEps, compute, out);
}
at::Tensor run(const OpCase& c) { return run_with(c, c.in[0].scalar_type(), c.in[0].scalar_type()); }
at::Tensor run_wide(const OpCase& c) {
  const auto wide = at_least_float(c.in[0].scalar_type());
  return run_with(c, wide, wide);
}
at::Tensor run_as_input(const OpCase& c) {
  return run_with(c, at_least_float(c.in[0].scalar_type()), c.in[0].scalar_type());
}

std::vector<OpCase> cases() {
  return {{"plain", {spread({2, 72, 64}, 1)}},
          {"affine", {spread({2, 24, 64}, 2), spread({64}, 3, 0.25, 1.0), spread({64}, 4, 0.2)}},
          {"wide rows", {spread({1, 6, 1536}, 5, 2.0)}},
          {"mean far from zero", {spread({1, 6, 1536}, 6, 1.0, 8.0)}},
          {"small values, where eps counts", {spread({1, 6, 64}, 7, 1e-3)}}};
}

}  // namespace

const OpRow& layer_norm_row() {
  // Worst measured: fp64 5.8 u at 'mean far from zero', fp32 7.5 u at 'mean far from zero', bf16 0 ulp.
  // Largest ULP distance there, fp32: [7373] got -0x1.5eeb4ep-14 want -0x1.5d65475476f95p-14 ('mean far from zero').
  static const OpRow row{
      "layer_norm", reference, run, cases, {{at::kDouble, {}, 12}, {at::kFloat, {}, 15}, {at::kBFloat16, 1, {}}}};
  return row;
}

const OpRow& layer_norm_wide_row() {
  // Worst measured: fp64 5.8 u at 'mean far from zero', fp32 7.5 u at 'mean far from zero', bf16 4.2 u at 'mean far
  // from zero'. Largest ULP distance there, fp32: [7373] got -0x1.5eeb4ep-14 want -0x1.5d65475476f95p-14 ('mean far
  // from zero').
  static const OpRow row{"layer_norm wide",
                         reference,
                         run_wide,
                         cases,
                         {{at::kDouble, {}, 12}, {at::kFloat, {}, 15}, {at::kBFloat16, {}, 9}}};
  return row;
}

const OpRow& layer_norm_as_input_row() {
  // Worst measured: fp64 5.8 u at 'mean far from zero', fp32 7.5 u at 'mean far from zero', bf16 0 ulp.
  // Largest ULP distance there, fp32: [7373] got -0x1.5eeb4ep-14 want -0x1.5d65475476f95p-14 ('mean far from zero').
  static const OpRow row{"layer_norm as input",
                         reference,
                         run_as_input,
                         cases,
                         {{at::kDouble, {}, 12}, {at::kFloat, {}, 15}, {at::kBFloat16, 1, {}}}};
  return row;
}

}  // namespace parity
