#include "ops/modulation.hpp"

#include "ops/owner.hpp"

namespace parity {
namespace ops {

at::Tensor modulation(const at::Tensor& table, const at::Tensor& e, int64_t axis) {
  if (e.dim() == 3) return table + e;
  return (axis == 1 ? table.unsqueeze(2) : table.unsqueeze(0)) + e;
}

std::vector<at::Tensor> parts_of(const at::Tensor& modulation, int64_t axis) {
  auto parts = modulation.chunk(modulation.size(axis), axis);
  if (modulation.dim() == 4)
    for (auto& part : parts) part = part.squeeze(axis);
  return parts;
}

namespace {

// x.float() * factor. Written over x where that is ours: a cast makes a new tensor; otherwise only if nobody else holds
// it.
// NOLINTNEXTLINE(performance-unnecessary-value-param): by value, so that this may be its only holder
at::Tensor times(at::Tensor x, const at::Tensor& factor, Precision precision) {
  const auto wide = redirect(at::kFloat, precision);
  if (x.scalar_type() != wide) return x.to(wide).mul_(factor);
  return sole_owner(x) ? x.mul_(factor) : x.mul(factor);
}

}  // namespace

at::Tensor mul_add(const at::Tensor& x, at::Tensor y, const at::Tensor& gate, Precision precision) {
  const auto product = times(std::move(y), gate, precision);
  return product.add_(x.to(product.scalar_type()));
}

at::Tensor mul_add_add(at::Tensor x, const at::Tensor& scale, const at::Tensor& shift, Precision precision) {
  return times(std::move(x), 1 + scale, precision).add_(shift);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): likewise
at::Tensor add(at::Tensor x, const at::Tensor& y) {
  if (sole_owner(x) && at::result_type(x, y) == x.scalar_type() && x.sizes() == y.sizes()) return x.add_(y);
  return x + y;
}

}  // namespace ops

namespace {

Precision precision_of(const OpCase& c) {
  return c.in[0].scalar_type() == at::kDouble ? Precision::fp64 : Precision::recorded;
}

double element(const at::Tensor& x, int64_t sample, int64_t token, int64_t k) {
  return x.accessor<double, 3>()[sample][x.size(1) == 1 ? 0 : token][k];
}

at::Tensor over_tokens(const at::Tensor& like, const std::function<double(int64_t, int64_t, int64_t)>& value) {
  auto out = at::empty(like.sizes(), at::kDouble);
  auto ys = out.accessor<double, 3>();
  for (int64_t b = 0; b < out.size(0); ++b)
    for (int64_t n = 0; n < out.size(1); ++n)
      for (int64_t k = 0; k < out.size(2); ++k) ys[b][n][k] = value(b, n, k);
  return out;
}

at::Tensor modulation_reference(const OpCase& c) {
  const auto table = c.in[0].accessor<double, 3>();
  if (c.in[1].dim() == 3)
    return over_tokens(c.in[1],
                       [&](int64_t b, int64_t n, int64_t k) { return table[0][n][k] + element(c.in[1], b, n, k); });
  auto out = c.in[1].clone();
  auto ys = out.accessor<double, 4>();
  for (int64_t b = 0; b < out.size(0); ++b)
    for (int64_t n = 0; n < out.size(1); ++n)
      for (int64_t t = 0; t < out.size(2); ++t)
        for (int64_t k = 0; k < out.size(3); ++k) ys[b][n][t][k] += table[0][n][k];
  return out;
}
at::Tensor mul_add_reference(const OpCase& c) {
  return over_tokens(c.in[0], [&](int64_t b, int64_t n, int64_t k) {
    return element(c.in[0], b, n, k) + element(c.in[1], b, n, k) * element(c.in[2], b, n, k);
  });
}
at::Tensor mul_add_add_reference(const OpCase& c) {
  return over_tokens(c.in[0], [&](int64_t b, int64_t n, int64_t k) {
    return element(c.in[0], b, n, k) * (1 + element(c.in[1], b, n, k)) + element(c.in[2], b, n, k);
  });
}

// The vectors are fp32 in every cast placement; only the activations are stored in the case's dtype.
at::Tensor vector_of(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat); }

at::Tensor add_reference(const OpCase& c) {
  return over_tokens(
      c.in[0], [&](int64_t b, int64_t n, int64_t k) { return element(c.in[0], b, n, k) + element(c.in[1], b, n, k); });
}

at::Tensor run_add(const OpCase& c) { return ops::add(c.in[0], c.in[1]); }
at::Tensor run_modulation(const OpCase& c) { return ops::modulation(vector_of(c.in[0]), c.in[1]); }
at::Tensor run_mul_add(const OpCase& c) { return ops::mul_add(c.in[0], c.in[1], vector_of(c.in[2]), precision_of(c)); }
at::Tensor run_mul_add_add(const OpCase& c) {
  return ops::mul_add_add(c.in[0], vector_of(c.in[1]), vector_of(c.in[2]), precision_of(c));
}

std::vector<OpCase> modulation_cases() {
  return {{"one step a sample", {spread({1, 6, 64}, 1, 0.3), spread({2, 6, 64}, 2)}},
          {"one step a token", {spread({1, 6, 64}, 3, 0.3), spread({2, 6, 9, 64}, 4)}}};
}
std::vector<OpCase> tokens_cases() {
  return {{"one step a sample", {spread({2, 37, 64}, 1), spread({2, 1, 64}, 2, 0.3), spread({2, 1, 64}, 3, 0.3, 0.5)}},
          {"one step a token", {spread({2, 9, 64}, 4), spread({2, 9, 64}, 5, 0.3), spread({2, 9, 64}, 6, 0.3, 0.5)}}};
}
std::vector<OpCase> gate_cases() {
  return {{"one step a sample", {spread({2, 37, 64}, 1), spread({2, 37, 64}, 2), spread({2, 1, 64}, 3, 0.15, 0.75)}},
          {"one step a token", {spread({2, 9, 64}, 4), spread({2, 9, 64}, 5), spread({2, 9, 64}, 6, 0.15, 0.75)}}};
}

}  // namespace

const OpRow& modulation_row() {
  // Worst measured: fp64 0 ulp, fp32 0 ulp, bf16 0 ulp.
  static const OpRow row{"modulation",
                         modulation_reference,
                         run_modulation,
                         modulation_cases,
                         {{at::kDouble, 0.5, {}}, {at::kFloat, 0.5, {}}, {at::kBFloat16, 0.5, {}}}};
  return row;
}

const OpRow& mul_add_row() {
  // Worst measured: fp64 0 u at 'one step a sample', fp32 0.53 u at 'one step a sample', bf16 0.024 u at 'one step a
  // sample'. Largest ULP distance there, fp32: [1230] got 0x1.2f5p-14 want 0x1.2f56f0b3ap-14 ('one step a sample').
  static const OpRow row{"mul_add",
                         mul_add_reference,
                         run_mul_add,
                         gate_cases,
                         {{at::kDouble, {}, 0.1}, {at::kFloat, {}, 1.1}, {at::kBFloat16, {}, 0.1}}};
  return row;
}

const OpRow& mul_add_add_row() {
  // Worst measured: fp64 0 u at 'one step a sample', fp32 0.73 u at 'one step a token', bf16 0.047 u at 'one step a
  // token'. Largest ULP distance there, fp32: [4610] got -0x1.37d8p-11 want -0x1.37dbfbb82p-11 ('one step a sample').
  static const OpRow row{"mul_add_add",
                         mul_add_add_reference,
                         run_mul_add_add,
                         tokens_cases,
                         {{at::kDouble, {}, 0.1}, {at::kFloat, {}, 1.5}, {at::kBFloat16, {}, 0.1}}};
  return row;
}

const OpRow& add_row() {
  // Worst measured: fp64 0 ulp, fp32 0 ulp, bf16 0 ulp.
  static const OpRow row{
      "add", add_reference, run_add, gate_cases, {{at::kDouble, 0, {}}, {at::kFloat, 0, {}}, {at::kBFloat16, 0, {}}}};
  return row;
}

}  // namespace parity
