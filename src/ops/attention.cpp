#include "ops/attention.hpp"

#include <fmt/format.h>

#include <limits>

#include "core/error.hpp"
#include "ops/fused_attention.hpp"
#include "ops/own.hpp"

namespace parity {
namespace ops {
namespace {

double lowest(at::ScalarType dtype) {
  if (dtype == at::kBFloat16) return std::numeric_limits<c10::BFloat16>::lowest();
  return dtype == at::kFloat ? std::numeric_limits<float>::lowest() : std::numeric_limits<double>::lowest();
}

}  // namespace

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask) {
  return fused_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), {mask});
}

at::Tensor own_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask) {
  ScoreForm form{std::pow(static_cast<double>(q.size(3)), -0.5)};
  if (mask.defined())  // finite, so that no score minus the largest is NaN
    form.bias = at::zeros(mask.sizes(), q.options()).masked_fill_(mask.logical_not(), lowest(q.scalar_type()));
  const auto y = own_encoder_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), form);
  return y.transpose(1, 2).contiguous().transpose(1, 2);  // LibTorch's layout
}

at::Tensor join_heads(const at::Tensor& x) { return x.transpose(1, 2).flatten(2); }

at::Tensor block_causal_mask(const Grid& grid, int64_t frames_per_block) {
  const auto [f, h, w] = grid;
  if (f % frames_per_block != 0)
    throw Error(
        fmt::format("[attention] {} latent frames are not a multiple of the causal block of {}", f, frames_per_block));
  const auto block = at::arange(f / frames_per_block).repeat_interleave(frames_per_block);
  const auto sees = block.unsqueeze(0) <= block.unsqueeze(1);  // (f, f): row looks at column
  return sees.view({f, 1, 1, f, 1, 1}).repeat({1, h, w, 1, h, w}).reshape({1, 1, f * h * w, f * h * w});
}

}  // namespace ops

namespace {

constexpr Grid kGrid{4, 3, 5};
constexpr int64_t kKeyBlock = 2;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Row by row, with the largest score subtracted; sees(i, j): may query i look at key j.
at::Tensor reference_with(const OpCase& c, bool (*sees)(int64_t, int64_t)) {
  const auto qs = c.in[0].accessor<double, 4>(), ks = c.in[1].accessor<double, 4>(), vs = c.in[2].accessor<double, 4>();
  const int64_t batch = qs.size(0), queries = qs.size(1), heads = qs.size(2), d = qs.size(3), keys = ks.size(1);
  auto out = at::zeros({batch, heads, queries, d}, at::kDouble);
  auto ys = out.accessor<double, 4>();
  std::vector<double> weight(keys);
  for (int64_t row = 0; row < batch * heads * queries; ++row) {
    const int64_t b = row / (heads * queries), head = row / queries % heads, i = row % queries;
    double largest = -kInfinity, total = 0;
    for (int64_t j = 0; j < keys; ++j) {
      double dot = 0;
      for (int64_t e = 0; e < d; ++e) dot += qs[b][i][head][e] * ks[b][j][head][e];
      weight[j] = sees(i, j) ? dot / std::sqrt(static_cast<double>(d)) : -kInfinity;
      largest = std::max(largest, weight[j]);
    }
    for (auto& w : weight) total += w = std::exp(w - largest);
    for (int64_t j = 0; j < keys; ++j)
      for (int64_t e = 0; e < d; ++e) ys[b][head][i][e] += weight[j] / total * vs[b][j][head][e];
  }
  return out;
}

at::Tensor reference(const OpCase& c) {
  return reference_with(c, [](int64_t, int64_t) { return true; });
}
at::Tensor causal_reference(const OpCase& c) {
  return reference_with(c, [](int64_t i, int64_t j) {
    const int64_t tokens = kKeyBlock * kGrid[1] * kGrid[2];
    return j / tokens <= i / tokens;
  });
}

at::Tensor run(const OpCase& c) { return ops::attention(c.in[0], c.in[1], c.in[2], {}); }
at::Tensor run_own(const OpCase& c) { return ops::own_attention(c.in[0], c.in[1], c.in[2], {}); }
at::Tensor run_own_causal(const OpCase& c) {
  return ops::own_attention(c.in[0], c.in[1], c.in[2], ops::block_causal_mask(kGrid, kKeyBlock));
}
at::Tensor run_causal(const OpCase& c) {
  return ops::attention(c.in[0], c.in[1], c.in[2], ops::block_causal_mask(kGrid, kKeyBlock));
}

std::vector<OpCase> cases() {
  return {{"self", {spread({2, 72, 2, 32}, 1), spread({2, 72, 2, 32}, 2), spread({2, 72, 2, 32}, 3)}},
          {"cross, text", {spread({1, 60, 2, 32}, 4), spread({1, 512, 2, 32}, 5), spread({1, 512, 2, 32}, 6)}},
          {"cross, image", {spread({1, 60, 3, 128}, 7), spread({1, 257, 3, 128}, 8), spread({1, 257, 3, 128}, 9)}},
          {"sharp", {spread({1, 72, 2, 32}, 10, 4.0), spread({1, 72, 2, 32}, 11, 4.0), spread({1, 72, 2, 32}, 12)}}};
}
std::vector<OpCase> causal_cases() {
  return {{"four frames in twos", {spread({1, 60, 2, 32}, 1), spread({1, 60, 2, 32}, 2), spread({1, 60, 2, 32}, 3)}}};
}

}  // namespace

const OpRow& attention_row() {
  // Worst measured: fp64 11 u at 'cross, text', fp32 11 u at 'sharp', bf16 0.56 u at 'cross, text'.
  // Largest ULP distance there, fp32: [266] got -0x1.a524fp-18 want -0x1.9fe905fb6f8p-18 ('cross, image').
  // Own: fp64 14.5 u and fp32 6.4 u at 'sharp', bf16 0.43 u (scripts/op_bounds).
  static const OpRow row{"attention",
                         reference,
                         run,
                         cases,
                         {{at::kDouble, {}, 23}, {at::kFloat, {}, 23}, {at::kBFloat16, {}, 0.8}},
                         {{"own", run_own, {{at::kDouble, {}, 29}, {at::kFloat, {}, 13}, {at::kBFloat16, {}, 0.6}}}}};
  return row;
}

const OpRow& attention_causal_row() {
  // Worst measured: fp64 4 u at 'four frames in twos', fp32 3.7 u at 'four frames in twos', bf16 0.55 u at 'four frames
  // in twos'. Largest ULP distance there, fp32: [3156] got -0x1.8c6964p-15 want -0x1.8c8b25f1dbdap-15 ('four frames in
  // twos').
  // Own: fp64 4.6 u, fp32 2.4 u, bf16 0.43 u (scripts/op_bounds).
  static const OpRow row{
      "attention, block-causal",
      causal_reference,
      run_causal,
      causal_cases,
      {{at::kDouble, {}, 8}, {at::kFloat, {}, 8}, {at::kBFloat16, {}, 0.8}},
      {{"own", run_own_causal, {{at::kDouble, {}, 9.2}, {at::kFloat, {}, 4.7}, {at::kBFloat16, {}, 0.6}}}}};
  return row;
}

}  // namespace parity
