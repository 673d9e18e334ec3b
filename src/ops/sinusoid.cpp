#include "ops/sinusoid.hpp"

namespace parity {
namespace ops {
namespace {

at::Tensor angles(const at::Tensor& time, int64_t half, SinusoidForm form, Precision precision) {
  const auto wide = at::TensorOptions(at::kDouble);
  if (form == SinusoidForm::f64)
    return at::outer(time.to(at::kDouble), at::pow(10000, at::arange(half, wide).div(half).neg()));
  if (form == SinusoidForm::f64_diffusers) {
    const auto rate = at::pow(10000, at::arange(half, wide).div_(static_cast<double>(half))).reciprocal();
    return time.unsqueeze(1) * rate;
  }
  const auto dtype = redirect(at::kFloat, precision);
  const auto rate = (at::arange(half, at::TensorOptions(dtype)) * -std::log(10000.0) / half).exp();
  return time.unsqueeze(1).to(dtype) * rate.unsqueeze(0);
}

}  // namespace

at::Tensor sinusoid(const at::Tensor& time, int64_t width, SinusoidForm form, Precision precision) {
  const auto angle = angles(time, width / 2, form, precision);
  return at::cat({angle.cos(), angle.sin()}, 1);
}

}  // namespace ops

namespace {

constexpr int64_t kWidth = 256;

at::Tensor reference(const OpCase& c) {
  const auto& time = c.in[0];
  auto out = at::empty({time.size(0), kWidth}, at::kDouble);
  auto ys = out.accessor<double, 2>();
  for (int64_t n = 0; n < time.size(0); ++n)
    for (int64_t i = 0; i < kWidth / 2; ++i) {
      const long double angle = time.accessor<double, 1>()[n] *
                                std::pow(10000.0L, -static_cast<long double>(i) / static_cast<long double>(kWidth / 2));
      ys[n][i] = static_cast<double>(std::cos(angle));
      ys[n][kWidth / 2 + i] = static_cast<double>(std::sin(angle));
    }
  return out;
}

template <SinusoidForm form>
at::Tensor run(const OpCase& c) {
  const auto precision = c.in[0].scalar_type() == at::kDouble ? Precision::fp64 : Precision::recorded;
  return ops::sinusoid(c.in[0], kWidth, form, precision);
}

// Whole steps, as schedulers hand them over, and those of the SkyReels sampler; the largest angle is the hardest.
std::vector<OpCase> cases() {
  return {{"steps", {at::tensor({0.0, 1.0, 500.0, 992.0}, at::kDouble)}},
          {"between steps", {at::tensor({713.25, 998.5}, at::kDouble)}}};
}

}  // namespace

const OpRow& sinusoid_f64_row() {
  // Worst measured: fp64 1e+02 u at 'between steps', fp32 1e+02 u at 'between steps', bf16 1.1e+02 u at 'between
  // steps'. Largest ULP distance there, fp32: [520] got -0x1.eccdf428eab5ap-10 want -0x1.eccdf428d36dap-10 ('steps').
  static const OpRow row{"sinusoid f64",
                         reference,
                         run<SinusoidForm::f64>,
                         cases,
                         {{at::kDouble, {}, 210}, {at::kFloat, {}, 210}, {at::kBFloat16, {}, 230}}};
  return row;
}

const OpRow& sinusoid_diffusers_row() {
  // Worst measured: fp64 1.5e+02 u at 'between steps', fp32 1.5e+02 u at 'between steps', bf16 1.4e+02 u at 'between
  // steps'. Largest ULP distance there, fp32: [520] got -0x1.eccdf428eab5ap-10 want -0x1.eccdf428d36dap-10 ('steps').
  static const OpRow row{"sinusoid f64 diffusers",
                         reference,
                         run<SinusoidForm::f64_diffusers>,
                         cases,
                         {{at::kDouble, {}, 300}, {at::kFloat, {}, 300}, {at::kBFloat16, {}, 280}}};
  return row;
}

const OpRow& sinusoid_f32_row() {
  // Worst measured: fp64 2.3e+02 u at 'between steps', fp32 1.3e+02 u at 'between steps', bf16 1.4e+02 u at 'between
  // steps'. Largest ULP distance there, fp32: [520] got -0x1.eefad8p-10 want -0x1.eccdf428d36dap-10 ('steps').
  static const OpRow row{"sinusoid f32",
                         reference,
                         run<SinusoidForm::f32>,
                         cases,
                         {{at::kDouble, {}, 460}, {at::kFloat, {}, 260}, {at::kBFloat16, {}, 270}}};
  return row;
}

}  // namespace parity
