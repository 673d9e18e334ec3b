#include "ops/unpatchify.hpp"

namespace parity {
namespace ops {

at::Tensor unpatchify(const at::Tensor& x, const Grid& grid, const std::array<int64_t, 3>& patch) {
  const auto [f, h, w] = grid;
  const auto [p, q, r] = patch;
  const int64_t channels = x.size(2) / (p * q * r);
  return x.reshape({x.size(0), f, h, w, p, q, r, channels})
      .permute({0, 7, 1, 4, 2, 5, 3, 6})
      .reshape({x.size(0), channels, f * p, h * q, w * r});
}

}  // namespace ops

namespace {

constexpr Grid kGrid{3, 4, 6};
constexpr std::array<int64_t, 3> kPatch{1, 2, 2};

at::Tensor reference(const OpCase& c) {
  const int64_t channels = c.in[0].size(2) / 4;
  auto out = at::empty({c.in[0].size(0), channels, kGrid[0], kGrid[1] * 2, kGrid[2] * 2}, at::kDouble);
  const auto xs = c.in[0].accessor<double, 3>();
  auto ys = out.accessor<double, 5>();
  for (int64_t b = 0; b < out.size(0); ++b)
    for (int64_t ch = 0; ch < channels; ++ch)
      for (int64_t t = 0; t < out.size(2); ++t)
        for (int64_t y = 0; y < out.size(3); ++y)
          for (int64_t x = 0; x < out.size(4); ++x)
            ys[b][ch][t][y][x] = xs[b][(t * kGrid[1] + y / 2) * kGrid[2] + x / 2][(y % 2 * 2 + x % 2) * channels + ch];
  return out;
}

at::Tensor run(const OpCase& c) { return ops::unpatchify(c.in[0], kGrid, kPatch); }

std::vector<OpCase> cases() { return {{"two samples", {spread({2, 72, 64}, 1)}}}; }

}  // namespace

const OpRow& unpatchify_row() {
  // Worst measured: fp64 0 ulp, fp32 0 ulp, bf16 0 ulp.
  static const OpRow row{
      "unpatchify", reference, run, cases, {{at::kDouble, 0, {}}, {at::kFloat, 0, {}}, {at::kBFloat16, 0, {}}}};
  return row;
}

}  // namespace parity
