#include "ops/fp8_rows.hpp"

#include <cmath>
#include <limits>

namespace parity {
namespace {

// OCP 8-bit floating point specification 1.0, table 2
constexpr double kLargest = 448, kSmallestExponent = -6, kMantissaBits = 3;

}  // namespace

namespace ops {

Fp8Rows fp8_rows(const at::Tensor& x) {
  const auto wide = x.to(at::kFloat);
  const auto scale = (wide.abs().amax({-1}, /*keepdim=*/true) / kLargest).clamp_min(std::numeric_limits<float>::min());
  return {(wide / scale).clamp(-kLargest, kLargest).to(at::kFloat8_e4m3fn), scale};
}

at::Tensor widen_rows(const Fp8Rows& rows, at::ScalarType dtype) {
  const auto wide = dtype == at::kDouble ? at::kDouble : at::kFloat;
  return (rows.values.to(wide) * rows.scale).to(dtype);
}

at::Tensor fp8_steps(const Fp8Rows& rows) {
  const auto exponent = rows.values.to(at::kDouble).abs().log2().floor().clamp_min(kSmallestExponent);
  return at::exp2(exponent - kMantissaBits) * rows.scale.to(at::kDouble);
}

}  // namespace ops

namespace {

// The format by its definition: all 127 finite magnitudes, of which the nearest is taken, the even one of two.
double nearest_e4m3(double x) {
  double best = 0, distance = std::fabs(x);
  for (int code = 1; code < 127; ++code) {
    const int exponent = code >> 3, mantissa = code & 7;
    const double value = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
    const double here = std::fabs(std::fabs(x) - value);
    if (here < distance || (here == distance && mantissa % 2 == 0)) best = value, distance = here;
  }
  return std::copysign(best, x);
}

at::Tensor reference(const OpCase& c) {
  const auto xs = c.in[0].accessor<double, 2>();
  const auto out = at::empty_like(c.in[0]);
  auto ys = out.accessor<double, 2>();
  for (int64_t i = 0; i < xs.size(0); ++i) {
    double largest = 0;
    for (int64_t k = 0; k < xs.size(1); ++k) largest = std::max(largest, std::fabs(xs[i][k]));
    const double scale = static_cast<float>(static_cast<float>(largest) / 448.0F);
    for (int64_t k = 0; k < xs.size(1); ++k) ys[i][k] = nearest_e4m3(xs[i][k] / scale) * scale;
  }
  return out;
}

at::Tensor run(const OpCase& c) { return ops::widen_rows(ops::fp8_rows(c.in[0]), c.in[0].scalar_type()); }

std::vector<OpCase> cases() {
  const auto far_apart = spread({9, 10}, 95) * spread({1, 10}, 96, 3.0).exp();  // subnormals too
  return {{"heads of 64", {spread({12, 64}, 93)}},
          {"small values", {spread({7, 20}, 94, 1e-4)}},
          {"values far apart", {far_apart}}};
}

}  // namespace

const OpRow& fp8_rows_row() {
  // Worst measured: 0 ulp everywhere.
  static const OpRow row{
      "fp8 rows", reference, run, cases, {{at::kDouble, 1, {}}, {at::kFloat, 1, {}}, {at::kBFloat16, 1, {}}}};
  return row;
}

}  // namespace parity
