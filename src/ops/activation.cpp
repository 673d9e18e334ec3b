#include "ops/activation.hpp"

#include "ops/one_pass.hpp"
#include "ops/owner.hpp"

namespace parity {
namespace ops {

at::Tensor gelu(at::Tensor x, GeluForm form) {
  const auto approximate = form == GeluForm::tanh ? "tanh" : "none";
  if (sole_owner(x)) return at::gelu_(x, approximate);
  return at::gelu(x, approximate);
}

at::Tensor quick_gelu(const at::Tensor& x) { return x * at::sigmoid(1.702 * x); }

at::Tensor silu(const at::Tensor& x) { return at::silu(x); }

}  // namespace ops

namespace {

at::Tensor map(const OpCase& c, double (*f)(double)) {
  auto out = c.in[0].clone().contiguous();
  for (double *y = out.data_ptr<double>(), *end = y + out.numel(); y != end; ++y) *y = f(*y);
  return out;
}

// Hendrycks & Gimpel 2016: x Phi(x), and the tanh approximation with sqrt(2/pi) (x + 0.044715 x^3).
at::Tensor gelu_tanh_reference(const OpCase& c) {
  return map(c, [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); });
}
// erfc keeps the digits that 1 + erf(x) loses for negative x.
at::Tensor gelu_erf_reference(const OpCase& c) {
  return map(c, [](double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); });
}
at::Tensor quick_gelu_reference(const OpCase& c) {
  return map(c, [](double x) { return x / (1 + std::exp(-1.702 * x)); });
}
at::Tensor silu_reference(const OpCase& c) {
  return map(c, [](double x) { return x / (1 + std::exp(-x)); });
}

template <GeluForm form>
at::Tensor run_gelu(const OpCase& c) {
  return ops::gelu(c.in[0], form);
}
at::Tensor run_own_gelu_tanh(const OpCase& c) { return ops::own_gelu_tanh(c.in[0]); }
at::Tensor run_quick_gelu(const OpCase& c) { return ops::quick_gelu(c.in[0]); }
at::Tensor run_silu(const OpCase& c) { return ops::silu(c.in[0]); }

// Odd sizes: the kernels' vector loop and their tail compute differently.
std::vector<OpCase> cases() {
  return {{"normal", {spread({2, 37, 53}, 1, 2.0)}},
          {"special", {at::tensor({0.0, -0.0, 30.0, INFINITY, double(NAN)}, at::kDouble)}}};
}

// LibTorch 2.13 makes NaN of the erf form's infinity in fp32 and bf16: no infinity here.
std::vector<OpCase> erf_cases() {
  return {cases()[0], {"special", {at::tensor({0.0, -0.0, 30.0, -30.0, double(NAN)}, at::kDouble)}}};
}

}  // namespace

// 1 + tanh cancels for negative x: relative error of single elements means nothing, so the whole is judged.
const OpRow& gelu_tanh_row() {
  // Worst measured: fp64 0.2 u at 'normal', fp32 0.6 u at 'normal', bf16 0.35 u at 'normal'.
  // Largest ULP distance there, fp32: [3133] got -0x0p-1022 want -0x1.34a56f113e68cp-23 ('normal').
  // Own: fp64 0.92 u, fp32 0.7 u, bf16 0.35 u, all at 'normal'.
  static const OpRow row{
      "gelu tanh",
      gelu_tanh_reference,
      run_gelu<GeluForm::tanh>,
      cases,
      {{at::kDouble, {}, 0.5}, {at::kFloat, {}, 1.2}, {at::kBFloat16, {}, 0.5}},
      {{"own", run_own_gelu_tanh, {{at::kDouble, {}, 1.9}, {at::kFloat, {}, 1.4}, {at::kBFloat16, {}, 0.5}}}}};
  return row;
}

const OpRow& gelu_erf_row() {
  // Worst measured: fp64 0.57 u at 'normal', fp32 1.6 u at 'normal', bf16 0.35 u at 'normal'.
  // Largest ULP distance there, fp32: [2605] got -0x0p-1022 want -0x1.630a707d49892p-24 ('normal').
  static const OpRow row{"gelu erf",
                         gelu_erf_reference,
                         run_gelu<GeluForm::erf>,
                         erf_cases,
                         {{at::kDouble, {}, 1.2}, {at::kFloat, {}, 4}, {at::kBFloat16, {}, 0.5}}};
  return row;
}

const OpRow& quick_gelu_row() {
  // Worst measured: fp64 0.63 u, fp32 0.76 u, bf16 0.44 u, all at 'normal'. Single elements are up to 6 ulp off in
  // bf16, where 1.702 x is rounded before the exponential.
  static const OpRow row{"gelu quick",
                         quick_gelu_reference,
                         run_quick_gelu,
                         cases,
                         {{at::kDouble, {}, 1.3}, {at::kFloat, {}, 1.6}, {at::kBFloat16, {}, 0.9}}};
  return row;
}

const OpRow& silu_row() {
  // Worst measured: fp64 0 ulp, fp32 2 ulp, bf16 0 ulp.
  static const OpRow row{
      "silu", silu_reference, run_silu, cases, {{at::kDouble, 4, {}}, {at::kFloat, 4, {}}, {at::kBFloat16, 1, {}}}};
  return row;
}

}  // namespace parity
