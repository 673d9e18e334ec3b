#include "ops/one_pass.hpp"

#include <ATen/Parallel.h>
#include <fmt/ranges.h>

#include "kernels/cpu/row_passes.hpp"
#include "ops/layer_norm.hpp"
#include "ops/modulation.hpp"
#include "ops/own_element.hpp"
#include "ops/owner.hpp"
#include "ops/rms_norm.hpp"
#include "ops/rope.hpp"

namespace parity {
namespace ops {
namespace {

constexpr int64_t kRowsAtLeast = 16;  // a thread: fewer are faster done than handed over

at::ScalarType computed_in(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }

// A vector for each sample, (batch, dim), as the kernels read it.
at::Tensor per_sample(const char* op, const at::Tensor& vector, const at::Tensor& x) {
  const bool fits = vector.dim() == 3 && (vector.size(0) == 1 || vector.size(0) == x.size(0)) && vector.size(1) == 1 &&
                    vector.size(2) == x.size(2);
  if (!fits)
    throw Error(
        fmt::format("[{}] [{}] does not fit rows [{}]", op, fmt::join(vector.sizes(), ","), fmt::join(x.sizes(), ",")));
  return vector.squeeze(1).expand({x.size(0), x.size(2)}).to(computed_in(x)).contiguous();
}

void check_rows(const char* op, const at::Tensor& x) {
  if (x.dim() != 3) throw Error(fmt::format("[{}] [{}] is not (batch, tokens, dim)", op, fmt::join(x.sizes(), ",")));
}

// x itself where it may be written over.
at::Tensor result_for(const at::Tensor& x) {
  return sole_owner(x) && x.is_contiguous() ? x : at::empty_like(x, at::MemoryFormat::Contiguous);
}

// work(sample, row of all, token): over the rows of x (batch, tokens, dim).
template <class Work>
void over_rows(const at::Tensor& x, const Work& work) {
  const int64_t tokens = x.size(1);
  at::parallel_for(0, x.size(0) * tokens, kRowsAtLeast, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) work(row / tokens, row, row % tokens);
  });
}

template <template <class> class Row>
at::Tensor elementwise(const char* op, const at::Tensor& x, const at::Tensor& out) {
  constexpr int64_t kShare = 16384;
  const at::Tensor all = x.contiguous();
  with_element(op, x, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    at::parallel_for(0, all.numel(), kShare, [&](int64_t begin, int64_t end) {
      kernels::row_pass(Row<T>{pointer<T>(all) + begin, pointer<T>(out) + begin, end - begin});
    });
  });
  return out;
}

}  // namespace

at::Tensor norm_modulate(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& shift, double eps) {
  check_rows("norm and modulation", x);
  const at::Tensor gains = per_sample("norm and modulation", gain, x),
                   shifts = per_sample("norm and modulation", shift, x), rows = x.contiguous();
  const at::Tensor y = at::empty_like(rows);
  const int64_t dim = x.size(2);
  with_element("norm and modulation", x, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    using C = kernels::RowNumber<T>;
    over_rows(rows, [&](int64_t sample, int64_t row, int64_t) {
      kernels::row_pass(kernels::NormAffine<T>{pointer<T>(rows) + row * dim, pointer<T>(y) + row * dim, dim,
                                               pointer<C>(gains) + sample * dim, pointer<C>(shifts) + sample * dim,
                                               eps});
    });
  });
  return y;
}

at::Tensor gate_residual(const at::Tensor& x, at::Tensor y, const at::Tensor& gate) {
  check_rows("gate and residual", x);
  if (y.sizes() != x.sizes() || y.scalar_type() != x.scalar_type())
    throw Error(fmt::format("[gate and residual] {} [{}] cannot be added to {} [{}]", dtype_name(y.scalar_type()),
                            fmt::join(y.sizes(), ","), dtype_name(x.scalar_type()), fmt::join(x.sizes(), ",")));
  const at::Tensor out = result_for(y), gates = per_sample("gate and residual", gate, x), rows = x.contiguous(),
                   more = y.contiguous();
  const int64_t dim = x.size(2);
  with_element("gate and residual", x, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    over_rows(rows, [&](int64_t sample, int64_t row, int64_t) {
      kernels::row_pass(kernels::GateAdd<T>{pointer<T>(rows) + row * dim, pointer<T>(more) + row * dim,
                                            pointer<T>(out) + row * dim, dim,
                                            pointer<kernels::RowNumber<T>>(gates) + sample * dim});
    });
  });
  return out;
}

at::Tensor norm_turn(at::Tensor x, const at::Tensor& weight, double eps, const RopeTurn& turn) {
  check_rows("norm and turn", x);
  const int64_t dim = x.size(2), tokens = x.size(1), head = turn.cos.defined() ? turn.cos.size(-1) : 2;
  const bool fits = weight.numel() == dim && dim % head == 0 && head % 2 == 0 &&
                    (!turn.cos.defined() || (turn.cos.numel() == tokens * head && turn.sin.numel() == tokens * head));
  if (!fits) throw Error(fmt::format("[norm and turn] rows [{}] do not fit", fmt::join(x.sizes(), ",")));
  const at::Tensor out = result_for(x), rows = x.contiguous(), gain = weight.to(computed_in(x)).contiguous();
  const auto table = [&](const at::Tensor& t) { return t.defined() ? t.to(computed_in(x)).contiguous() : t; };
  const at::Tensor cos = table(turn.cos), sin = table(turn.sin);
  with_element("norm and turn", x, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    using C = kernels::RowNumber<T>;
    over_rows(rows, [&](int64_t, int64_t row, int64_t token) {
      kernels::row_pass(kernels::NormTurn<T>{pointer<T>(rows) + row * dim, pointer<T>(out) + row * dim, dim,
                                             pointer<C>(gain), static_cast<float>(eps),
                                             cos.defined() ? pointer<C>(cos) + token * head : nullptr,
                                             sin.defined() ? pointer<C>(sin) + token * head : nullptr, head});
    });
  });
  return out;
}

at::Tensor own_gelu_tanh(at::Tensor x) { return elementwise<kernels::GeluTanh>("gelu", x, result_for(x)); }

at::Tensor own_gelu_new(at::Tensor x) { return elementwise<kernels::GeluNew>("gelu new", x, result_for(x)); }

}  // namespace ops

namespace {

constexpr double kEps = 1e-6;
constexpr Grid kGrid{2, 3, 4};

at::Tensor vector_of(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat); }

// Row by row; `write(row, sample, token, y)` fills y from a row of x.
template <class Write>
at::Tensor row_by_row(const at::Tensor& x, const Write& write) {
  const at::Tensor out = at::empty_like(x);
  const auto xs = x.accessor<double, 3>();
  auto ys = out.accessor<double, 3>();
  for (int64_t b = 0; b < x.size(0); ++b)
    for (int64_t n = 0; n < x.size(1); ++n) write(xs[b][n], b, n, ys[b][n]);
  return out;
}

double of_sample(const at::Tensor& vectors, int64_t b, int64_t k) {
  return vectors.accessor<double, 3>()[vectors.size(0) == 1 ? 0 : b][0][k];
}

at::Tensor modulated_reference(const OpCase& c) {
  return row_by_row(c.in[0], [&](auto x, int64_t b, int64_t, auto y) {
    long double mean = 0, square = 0;
    for (int64_t k = 0; k < x.size(0); ++k) mean += static_cast<long double>(x[k]) / x.size(0);
    for (int64_t k = 0; k < x.size(0); ++k) square += (x[k] - mean) * (x[k] - mean);
    const long double unit = 1 / std::sqrt(square / x.size(0) + kEps);
    for (int64_t k = 0; k < x.size(0); ++k)
      y[k] = static_cast<double>((x[k] - mean) * unit * (1 + of_sample(c.in[1], b, k)) + of_sample(c.in[2], b, k));
  });
}

at::Tensor gated_reference(const OpCase& c) {
  const auto ys = c.in[1].accessor<double, 3>();
  return row_by_row(c.in[0], [&](auto x, int64_t b, int64_t n, auto out) {
    for (int64_t k = 0; k < x.size(0); ++k) out[k] = x[k] + ys[b][n][k] * of_sample(c.in[2], b, k);
  });
}

// The angle of a token's pair `i` of a head `d` wide, as Wan divides it among frame, row and column.
double angle(int64_t token, int64_t i, int64_t d) {
  const int64_t third = d / 6, width[] = {d - 4 * third, 2 * third, 2 * third};
  const int64_t position[] = {token / (kGrid[1] * kGrid[2]), token / kGrid[2] % kGrid[1], token % kGrid[2]};
  int64_t axis = 0, first = 2 * i;
  for (; first >= width[axis]; ++axis) first -= width[axis];
  return static_cast<double>(position[axis]) *
         std::pow(10000.0, -static_cast<double>(first) / static_cast<double>(width[axis]));
}

at::Tensor turned_reference(const OpCase& c) {
  const auto ws = c.in[1].accessor<double, 1>();
  const int64_t d = c.in[2].size(0);
  return row_by_row(c.in[0], [&](auto x, int64_t, int64_t n, auto y) {
    long double square = 0;
    for (int64_t k = 0; k < x.size(0); ++k) square += static_cast<long double>(x[k]) * x[k];
    const long double unit = 1 / std::sqrt(square / x.size(0) + static_cast<float>(kEps));
    for (int64_t k = 0; k < x.size(0); k += 2) {
      const long double a = x[k] * unit * ws[k], b = x[k + 1] * unit * ws[k + 1];
      const long double t = angle(n, k % d / 2, d), cosine = std::cos(t), sine = std::sin(t);
      y[k] = static_cast<double>(a * cosine - b * sine), y[k + 1] = static_cast<double>(b * cosine + a * sine);
    }
  });
}

Precision precision_of(const OpCase& c) {
  return c.in[0].scalar_type() == at::kDouble ? Precision::fp64 : Precision::recorded;
}

// LibTorch's: the ops one by one.
at::Tensor run_modulated(const OpCase& c) {
  const at::ScalarType wide = vector_of(c.in[0]).scalar_type();
  return ops::mul_add_add(ops::layer_norm(c.in[0], {}, {}, kEps, wide, wide), vector_of(c.in[1]), vector_of(c.in[2]),
                          precision_of(c))
      .to(c.in[0].scalar_type());
}
at::Tensor run_gated(const OpCase& c) {
  return ops::mul_add(c.in[0], c.in[1], vector_of(c.in[2]), precision_of(c)).to(c.in[0].scalar_type());
}
RopeTurn turn_for(const OpCase& c) {
  const int64_t d = c.in[2].size(0);
  auto table = ops::rope_table(16, d, RopeForm::real);
  if (c.in[0].scalar_type() == at::kDouble) {  // the same arithmetic on an unrounded table
    const at::Tensor points = ops::rope_table(16, d, RopeForm::complex128).freqs;
    table = {{}, at::real(points).repeat_interleave(2, 1), at::imag(points).repeat_interleave(2, 1)};
  }
  return ops::rope_turn(table, kGrid);
}
at::Tensor run_turned(const OpCase& c) {
  const at::Tensor y = ops::rms_norm(c.in[0], c.in[1], kEps, RmsForm::round_once, precision_of(c));
  return ops::rope(y.unflatten(2, {-1, c.in[2].size(0)}), turn_for(c), precision_of(c)).flatten(2);
}

at::Tensor run_own_modulated(const OpCase& c) {
  return ops::norm_modulate(c.in[0], 1 + vector_of(c.in[1]), vector_of(c.in[2]), kEps);
}
at::Tensor run_own_gated(const OpCase& c) { return ops::gate_residual(c.in[0], c.in[1], vector_of(c.in[2])); }
at::Tensor run_own_turned(const OpCase& c) { return ops::norm_turn(c.in[0], c.in[1], kEps, turn_for(c)); }

// Widths that no vector divides, and means far from zero.
std::vector<OpCase> modulated_cases() {
  return {{"two samples", {spread({2, 37, 70}, 1), spread({2, 1, 70}, 2, 0.3), spread({2, 1, 70}, 3, 0.3, 0.5)}},
          {"one vector for all", {spread({2, 9, 64}, 4, 2.0, 3.0), spread({1, 1, 64}, 5, 0.3), spread({1, 1, 64}, 6)}},
          {"wide rows", {spread({1, 6, 1536}, 7, 2.0), spread({1, 1, 1536}, 8, 0.3), spread({1, 1, 1536}, 9)}}};
}
std::vector<OpCase> gated_cases() {
  return {{"two samples", {spread({2, 37, 70}, 1), spread({2, 37, 70}, 2), spread({2, 1, 70}, 3, 0.15, 0.75)}},
          {"one vector for all", {spread({2, 9, 64}, 4), spread({2, 9, 64}, 5), spread({1, 1, 64}, 6, 0.15, 0.75)}}};
}
std::vector<OpCase> turned_cases() {  // the last stands for a head's width
  return {{"heads of 32", {spread({2, 24, 64}, 1), spread({64}, 2, 0.25, 1.0), spread({32}, 3)}},
          {"heads of 128", {spread({1, 24, 384}, 4, 3.0), spread({384}, 5, 0.25, 1.0), spread({128}, 6)}},
          {"heads of 18", {spread({1, 24, 54}, 7), spread({54}, 8, 0.25, 1.0), spread({18}, 9)}}};
}

}  // namespace

const OpRow& norm_modulate_row() {
  // Worst measured: fp64 1.3 u, fp32 1.3 u, bf16 0.43 u at 'one vector for all'; own, on an
  // emulated nehalem: fp64 1.9 u at 'wide rows', fp32 1.3 u at 'two samples', bf16 0.43 u.
  static const OpRow row{
      "layer_norm, modulated",
      modulated_reference,
      run_modulated,
      modulated_cases,
      {{at::kDouble, {}, 2.6}, {at::kFloat, {}, 2.6}, {at::kBFloat16, {}, .6}},
      {{"own", run_own_modulated, {{at::kDouble, {}, 3.9}, {at::kFloat, {}, 2.7}, {at::kBFloat16, {}, .6}}}}};
  return row;
}

const OpRow& gate_residual_row() {
  // Worst measured: fp64 0 u, fp32 0.54 u, bf16 0.44 u, all at 'two samples'; own: fp64 0.58 u, fp32 0.43 u (0.54
  // without fused multiply-add), bf16 0.44 u.
  static const OpRow row{
      "gate and residual",
      gated_reference,
      run_gated,
      gated_cases,
      {{at::kDouble, {}, .1}, {at::kFloat, {}, 1.1}, {at::kBFloat16, {}, .6}},
      {{"own", run_own_gated, {{at::kDouble, {}, 1.2}, {at::kFloat, {}, 1.1}, {at::kBFloat16, {}, .6}}}}};
  return row;
}

const OpRow& norm_turn_row() {
  // Worst measured, all at 'heads of 18': fp64 1.3 u, fp32 1.2 u, bf16 0.54 u; own: fp64 1.7 u on an emulated nehalem,
  // fp32 1.3 u, bf16 0.54 u.
  static const OpRow row{
      "rms_norm and rope real",
      turned_reference,
      run_turned,
      turned_cases,
      {{at::kDouble, {}, 2.6}, {at::kFloat, {}, 2.5}, {at::kBFloat16, {}, .8}},
      {{"own", run_own_turned, {{at::kDouble, {}, 3.4}, {at::kFloat, {}, 2.6}, {at::kBFloat16, {}, .8}}}}};
  return row;
}

}  // namespace parity
