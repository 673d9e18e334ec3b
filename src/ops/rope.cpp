#include "ops/rope.hpp"

namespace parity {
namespace ops {
namespace {

at::Tensor turn_complex(const at::Tensor& x, const at::Tensor& turn, Precision precision) {
  const auto pairs = x.to(c10::toRealValueType(turn.scalar_type())).reshape({x.size(0), x.size(1), x.size(2), -1, 2});
  return at::view_as_real(at::view_as_complex(pairs) * turn).flatten(3).to(redirect(at::kFloat, precision));
}

at::Tensor turn_real(const at::Tensor& x, const RopeTurn& turn) {
  const auto every = [](const at::Tensor& t, int64_t first) { return t.slice(-1, first, std::nullopt, 2); };
  const auto cos = every(turn.cos, 0).reshape({1, x.size(1), 1, -1}),
             sin = every(turn.sin, 1).reshape({1, x.size(1), 1, -1});
  const auto x1 = every(x, 0), x2 = every(x, 1);
  auto out = at::empty_like(x);
  every(out, 0).copy_((x1 * cos).sub_(x2 * sin));
  every(out, 1).copy_((x1 * sin).add_(x2 * cos));
  return out;
}

}  // namespace

at::Tensor rope(const at::Tensor& x, const RopeTurn& turn, Precision precision) {
  return turn.turn.defined() ? turn_complex(x, turn.turn, precision) : turn_real(x, turn);
}

}  // namespace ops

namespace {

constexpr Grid kGrid{3, 4, 6};

// The rotation matrix, pair by pair, with angles from the table's definition.
at::Tensor reference(const OpCase& c) {
  const auto& x = c.in[0];
  const int64_t d = x.size(3), third = d / 6;
  auto out = at::empty_like(x);
  const auto xs = x.accessor<double, 4>();
  auto ys = out.accessor<double, 4>();
  for (int64_t token = 0; token < x.size(1); ++token) {
    const int64_t position[] = {token / (kGrid[1] * kGrid[2]), token / kGrid[2] % kGrid[1], token % kGrid[2]};
    const int64_t width[] = {d - 4 * third, 2 * third, 2 * third};
    for (int64_t axis = 0, first = 0; axis < 3; first += width[axis++])
      for (int64_t i = 0; i < width[axis]; i += 2) {
        const double angle = static_cast<double>(position[axis]) *
                             std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(width[axis]));
        const double cosine = std::cos(angle), sine = std::sin(angle);
        for (int64_t b = 0; b < x.size(0); ++b)
          for (int64_t head = 0; head < x.size(2); ++head) {
            const double p = xs[b][token][head][first + i], q = xs[b][token][head][first + i + 1];
            ys[b][token][head][first + i] = p * cosine - q * sine;
            ys[b][token][head][first + i + 1] = p * sine + q * cosine;
          }
      }
  }
  return out;
}

template <RopeForm form>
at::Tensor run(const OpCase& c) {
  const bool wide = c.in[0].scalar_type() == at::kDouble;
  auto table = ops::rope_table(16, c.in[0].size(3), wide ? RopeForm::complex128 : form);
  if (wide && form == RopeForm::real) {  // the real form's arithmetic on an unrounded table
    const auto twice = [](const at::Tensor& t) { return t.repeat_interleave(2, 1); };
    table = {{}, twice(at::real(table.freqs)), twice(at::imag(table.freqs))};
  }
  return ops::rope(c.in[0], ops::rope_turn(table, kGrid), wide ? Precision::fp64 : Precision::recorded);
}

std::vector<OpCase> cases() {
  return {{"heads of 32", {spread({2, 72, 2, 32}, 1)}}, {"heads of 128", {spread({1, 72, 3, 128}, 2)}}};
}

}  // namespace

const OpRow& rope_complex64_row() {
  // Worst measured: fp64 0.32 u at 'heads of 32', fp32 0.64 u at 'heads of 128', bf16 0.64 u at 'heads of 128'.
  // Largest ULP distance there, fp32: [14956] got -0x1.2618p-17 want -0x1.26280e34eb4p-17 ('heads of 128').
  static const OpRow row{"rope complex64",
                         reference,
                         run<RopeForm::complex64>,
                         cases,
                         {{at::kDouble, {}, 0.7}, {at::kFloat, {}, 1.3}, {at::kBFloat16, {}, 0.9}}};
  return row;
}

const OpRow& rope_complex128_row() {
  // Worst measured: fp64 0.32 u at 'heads of 32', fp32 0.37 u at 'heads of 128', bf16 0.37 u at 'heads of 128'.
  // Largest ULP distance there, fp32: [0] got -0x1.3ec2bp-2 want -0x1.3ec2bp-2 ('heads of 32').
  static const OpRow row{"rope complex128",
                         reference,
                         run<RopeForm::complex128>,
                         cases,
                         {{at::kDouble, {}, 0.7}, {at::kFloat, {}, 0.8}, {at::kBFloat16, {}, 0.5}}};
  return row;
}

const OpRow& rope_real_row() {
  // Worst measured: fp64 0.32 u at 'heads of 32', fp32 0.59 u at 'heads of 32', bf16 0.34 u at 'heads of 32'.
  // Largest ULP distance there, fp32: [10199] got -0x1.d4f4p-15 want -0x1.d4f7e0a8992p-15 ('heads of 128').
  static const OpRow row{"rope real",
                         reference,
                         run<RopeForm::real>,
                         cases,
                         {{at::kDouble, {}, 0.7}, {at::kFloat, {}, 1.2}, {at::kBFloat16, {}, 0.5}}};
  return row;
}

}  // namespace parity
