#include "ops/rms_norm.hpp"

namespace parity {
namespace ops {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps, RmsForm form, Precision precision) {
  if (form == RmsForm::round_once) eps = static_cast<float>(eps);
  const auto wide = x.to(redirect(at::kFloat, precision));
  const auto unit = wide * wide.pow(2).mean({-1}, /*keepdim=*/true).add_(eps).rsqrt_();
  if (form == RmsForm::wide) return unit * weight;
  if (form == RmsForm::t5)
    return (c10::elementSize(weight.scalar_type()) == 2 ? unit.to(weight.scalar_type()) : unit) * weight;
  if (form == RmsForm::round_first) return unit.to(x.scalar_type()) * weight;
  return (unit * weight).to(x.scalar_type());  // round_once, round_last
}

}  // namespace ops

namespace {

constexpr double kEps = 1e-6;

at::Tensor reference_with(const OpCase& c, double eps) {
  const auto x = c.in[0].reshape({-1, c.in[0].size(-1)});
  const auto out = at::empty_like(x);
  const auto xs = x.accessor<double, 2>();
  const auto ws = c.in[1].accessor<double, 1>();
  auto ys = out.accessor<double, 2>();
  for (int64_t i = 0; i < x.size(0); ++i) {
    long double square = 0;
    for (int64_t k = 0; k < x.size(1); ++k) square += static_cast<long double>(xs[i][k]) * xs[i][k];
    for (int64_t k = 0; k < x.size(1); ++k)
      ys[i][k] = static_cast<double>(xs[i][k] / std::sqrt(square / x.size(1) + eps) * ws[k]);
  }
  return out.view(c.in[0].sizes());
}
at::Tensor reference(const OpCase& c) { return reference_with(c, kEps); }
at::Tensor reference_float_eps(const OpCase& c) { return reference_with(c, 9.999999974752427e-07); }

template <RmsForm form>
at::Tensor run(const OpCase& c) {
  const auto precision = c.in[0].scalar_type() == at::kDouble ? Precision::fp64 : Precision::recorded;
  return ops::rms_norm(c.in[0], c.in[1], kEps, form, precision);
}

std::vector<OpCase> cases() {
  return {{"tokens", {spread({2, 72, 64}, 1), spread({64}, 2, 0.25, 1.0)}},
          {"wide rows", {spread({1, 8, 1536}, 3, 3.0), spread({1536}, 4, 0.25, 1.0)}},
          {"small values, where eps counts", {spread({1, 8, 64}, 5, 1e-3), spread({64}, 6, 0.25, 1.0)}}};
}

}  // namespace

const OpRow& rms_norm_wide_row() {
  // Worst measured: fp64 1.1 u at 'wide rows', fp32 1.1 u at 'wide rows', bf16 1.2 u at 'wide rows'.
  // Largest ULP distance there, fp32: [1890] got 0x1.cf33cep-1 want 0x1.cf33c8efde9bep-1 ('tokens').
  static const OpRow row{"rms_norm wide",
                         reference,
                         run<RmsForm::wide>,
                         cases,
                         {{at::kDouble, {}, 2.3}, {at::kFloat, {}, 2.2}, {at::kBFloat16, {}, 2.5}}};
  return row;
}

const OpRow& rms_norm_round_first_row() {
  // Worst measured: fp64 1.1 u at 'wide rows', fp32 1.1 u at 'wide rows', bf16 1 ulp.
  // Largest ULP distance there, fp32: [1890] got 0x1.cf33cep-1 want 0x1.cf33c8efde9bep-1 ('tokens').
  static const OpRow row{"rms_norm round first",
                         reference,
                         run<RmsForm::round_first>,
                         cases,
                         {{at::kDouble, {}, 2.3}, {at::kFloat, {}, 2.2}, {at::kBFloat16, 2, {}}}};
  return row;
}

const OpRow& rms_norm_t5_row() {
  // Worst measured: fp64 1.1 u at 'wide rows', fp32 1.1 u at 'wide rows', bf16 1 ulp.
  // Largest ULP distance there, fp32: [1890] got 0x1.cf33cep-1 want 0x1.cf33c8efde9bep-1 ('tokens').
  static const OpRow row{"rms_norm t5",
                         reference,
                         run<RmsForm::t5>,
                         cases,
                         {{at::kDouble, {}, 2.3}, {at::kFloat, {}, 2.2}, {at::kBFloat16, 2, {}}}};
  return row;
}

const OpRow& rms_norm_round_once_row() {
  // Worst measured: fp64 1.1 u at 'small values, where eps counts', fp32 1.1 u at 'wide rows', bf16 0 ulp.
  // Largest ULP distance there, fp32: [1890] got 0x1.cf33cep-1 want 0x1.cf33c8efde9c7p-1 ('tokens').
  static const OpRow row{"rms_norm round once",
                         reference_float_eps,
                         run<RmsForm::round_once>,
                         cases,
                         {{at::kDouble, {}, 2.3}, {at::kFloat, {}, 2.2}, {at::kBFloat16, 1, {}}}};
  return row;
}

const OpRow& rms_norm_round_last_row() {
  // Worst measured: fp64 1.1 u at 'wide rows', fp32 1.1 u at 'wide rows', bf16 0 ulp.
  static const OpRow row{"rms_norm round last",
                         reference,
                         run<RmsForm::round_last>,
                         cases,
                         {{at::kDouble, {}, 2.3}, {at::kFloat, {}, 2.2}, {at::kBFloat16, 1, {}}}};
  return row;
}

}  // namespace parity
