#include "ops/rope_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace parity {
namespace ops {
namespace {

constexpr double kTheta = 10000;

std::array<int64_t, 3> axis_split(int64_t width, int64_t third) { return {width - 2 * third, third, third}; }

at::Tensor angles(int64_t length, int64_t width, at::ScalarType real) {
  const auto exponent = at::arange(0, width, 2, at::kLong).to(real).div(width);
  return at::outer(at::arange(length, at::kLong), at::pow(kTheta, exponent).reciprocal());
}

at::Tensor over_grid(const at::Tensor& table, const Grid& grid, const std::array<int64_t, 3>& widths) {
  const auto parts = table.split_with_sizes(widths, 1);
  std::vector<at::Tensor> axes;
  for (int64_t axis = 0; axis < 3; ++axis) {
    std::array<int64_t, 4> shape{1, 1, 1, widths[axis]};
    shape[axis] = grid[axis];
    axes.push_back(parts[axis].slice(0, 0, grid[axis]).view(shape).expand({grid[0], grid[1], grid[2], -1}));
  }
  return at::cat(axes, -1);
}

}  // namespace

RopeTable rope_table(int64_t length, int64_t head_dim, RopeForm form) {
  std::vector<at::Tensor> first, second;
  for (const int64_t width : axis_split(head_dim, 2 * (head_dim / 6))) {
    const auto angle = angles(length, width, form == RopeForm::complex64 ? at::kFloat : at::kDouble);
    if (form == RopeForm::real) {
      first.push_back(angle.cos().repeat_interleave(2, 1).to(at::kFloat));
      second.push_back(angle.sin().repeat_interleave(2, 1).to(at::kFloat));
    } else {
      first.push_back(at::polar(at::ones_like(angle), angle));
    }
  }
  if (form == RopeForm::real) return {{}, at::cat(first, 1), at::cat(second, 1)};
  return {at::cat(first, 1), {}, {}};
}

RopeTurn rope_turn(const RopeTable& table, const Grid& grid) {
  const auto& any = table.freqs.defined() ? table.freqs : table.cos;
  if (const auto longest = *std::max_element(grid.begin(), grid.end()); longest > any.size(0))
    throw Error(fmt::format(
        "[rope] the table holds {} positions, the video needs {} along one axis: record it with a longer table",
        any.size(0), longest));
  if (table.freqs.defined()) {
    const auto widths = axis_split(any.size(1), any.size(1) / 3);
    return {over_grid(table.freqs, grid, widths).reshape({-1, 1, any.size(1)}), {}, {}};
  }
  const auto widths = axis_split(any.size(1), 2 * (any.size(1) / 6));
  return {{}, over_grid(table.cos, grid, widths), over_grid(table.sin, grid, widths)};
}

}  // namespace ops

namespace {

// in[0]: frames, rows, columns, head_dim. Rows: tokens; columns: cosines of every pair, then sines.
at::Tensor reference(const OpCase& c) {
  const auto sizes = c.in[0].accessor<double, 1>();
  const auto f = static_cast<int64_t>(sizes[0]), h = static_cast<int64_t>(sizes[1]), w = static_cast<int64_t>(sizes[2]);
  const auto d = static_cast<int64_t>(sizes[3]), third = d / 6;
  auto out = at::empty({f * h * w, d}, at::kDouble);
  auto ys = out.accessor<double, 2>();
  for (int64_t token = 0; token < f * h * w; ++token) {
    const int64_t position[] = {token / (h * w), token / w % h, token % w},
                  width[] = {d - 4 * third, 2 * third, 2 * third};
    int64_t pair = 0;
    for (int axis = 0; axis < 3; ++axis)
      for (int64_t i = 0; i < width[axis] / 2; ++i, ++pair) {
        const long double angle = position[axis] * std::pow(10000.0L, -2.0L * i / width[axis]);
        ys[token][pair] = static_cast<double>(std::cos(angle));
        ys[token][d / 2 + pair] = static_cast<double>(std::sin(angle));
      }
  }
  return out;
}

// The storage dtype chooses the form: fp64 complex128, fp32 complex64, bf16 (which no table is kept in) the real one.
at::Tensor run(const OpCase& c) {
  const auto dtype = c.in[0].scalar_type();
  const auto sizes = c.in[0].to(at::kLong);
  const auto at = [&](int64_t i) { return sizes[i].item<int64_t>(); };
  const Grid grid{at(0), at(1), at(2)};
  const auto form = dtype == at::kDouble  ? RopeForm::complex128
                    : dtype == at::kFloat ? RopeForm::complex64
                                          : RopeForm::real;
  const auto turn = ops::rope_turn(ops::rope_table(64, at(3), form), grid);
  if (form != RopeForm::real) return at::cat({at::real(turn.turn), at::imag(turn.turn)}, 2).squeeze(1);
  return at::cat({turn.cos.slice(-1, 0, std::nullopt, 2), turn.sin.slice(-1, 1, std::nullopt, 2)}, -1).flatten(0, 2);
}

std::vector<OpCase> cases() {
  return {{"head of 32", {at::tensor({3.0, 4.0, 6.0, 32.0}, at::kDouble)}},
          {"head of 128", {at::tensor({3.0, 34.0, 60.0, 128.0}, at::kDouble)}}};
}

}  // namespace

const OpRow& rope_table_row() {
  // Worst measured: fp64 4.8 u at 'head of 128', fp32 3 u at 'head of 128', bf16 0.3 u at 'head of 32'.
  // Largest ULP distance there, fp32: [5294] got 0x1.c7d608p-9 want 0x1.c7edf400c50f8p-9 ('head of 128').
  static const OpRow row{
      "rope table", reference, run, cases, {{at::kDouble, {}, 10}, {at::kFloat, {}, 7}, {at::kBFloat16, {}, 0.4}}};
  return row;
}

}  // namespace parity
