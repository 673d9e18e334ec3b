#include "ops/encoder_attention.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "core/error.hpp"
#include "ops/fused_attention.hpp"
#include "ops/own.hpp"

namespace parity {
namespace ops {

void check_encoder_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const ScoreForm& form) {
  const bool fits = q.dim() == 4 && k.dim() == 4 && k.sizes() == v.sizes() && q.size(0) == k.size(0) &&
                    q.size(1) == k.size(1) && q.size(3) == k.size(3);
  if (!fits)
    throw Error(fmt::format("[attention] queries [{}] do not fit keys [{}] and values [{}]", fmt::join(q.sizes(), ","),
                            fmt::join(k.sizes(), ","), fmt::join(v.sizes(), ",")));
  const auto& bias = form.bias;
  if (!bias.defined()) return;
  const auto one_or = [&](int64_t axis) { return bias.size(axis) == 1 || bias.size(axis) == q.size(axis); };
  if (bias.dim() != 4 || !one_or(0) || !one_or(1) || bias.size(2) != q.size(2) || bias.size(3) != k.size(2))
    throw Error(fmt::format("[attention] a bias [{}] does not fit queries [{}] and {} keys",
                            fmt::join(bias.sizes(), ","), fmt::join(q.sizes(), ","), k.size(2)));
}

at::Tensor encoder_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const ScoreForm& form) {
  check_encoder_attention(q, k, v, form);
  return fused_attention(q, k, v, {form.bias, /*is_causal=*/false, form.scale});
}

}  // namespace ops

namespace {

// The definition, one query after the other, the largest score subtracted.
at::Tensor reference(const OpCase& c) {
  const auto qs = c.in[0].accessor<double, 4>(), ks = c.in[1].accessor<double, 4>(), vs = c.in[2].accessor<double, 4>();
  const int64_t heads = qs.size(1), queries = qs.size(2), d = qs.size(3), keys = ks.size(2);
  const bool biased = c.in.size() > 3;
  const long double scale = biased ? 1 : 1 / std::sqrt(static_cast<long double>(d));
  auto out = at::zeros(c.in[0].sizes(), at::kDouble);
  auto ys = out.accessor<double, 4>();
  for (int64_t row = 0; row < qs.size(0) * heads * queries; ++row) {
    const int64_t b = row / (heads * queries), head = row / queries % heads, i = row % queries;
    std::vector<long double> weight(keys, 0);
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t e = 0; e < d; ++e) weight[j] += scale * qs[b][head][i][e] * ks[b][head][j][e];
      if (biased) weight[j] += c.in[3].accessor<double, 4>()[b][head][i][j];
    }
    const auto largest = *std::max_element(weight.begin(), weight.end());
    long double total = 0;
    for (auto& w : weight) total += w = std::exp(w - largest);
    for (int64_t j = 0; j < keys; ++j)
      for (int64_t e = 0; e < d; ++e) ys[b][head][i][e] += static_cast<double>(weight[j] / total * vs[b][head][j][e]);
  }
  return out;
}

ScoreForm form_of(const OpCase& c) {
  if (c.in.size() > 3) return {1, c.in[3]};
  return {std::pow(static_cast<double>(c.in[0].size(3)), -0.5)};
}
at::Tensor run(const OpCase& c) { return ops::encoder_attention(c.in[0], c.in[1], c.in[2], form_of(c)); }
at::Tensor run_own(const OpCase& c) { return ops::own_encoder_attention(c.in[0], c.in[1], c.in[2], form_of(c)); }

OpCase image(std::string name, int64_t heads, int64_t tokens, int64_t d, double scale = 1) {
  const auto seed = static_cast<uint64_t>(tokens * 100 + d);
  const std::vector<int64_t> shape{2, heads, tokens, d};
  return {std::move(name), {spread(shape, seed, scale), spread(shape, seed + 1, scale), spread(shape, seed + 2)}};
}

// The second sample's last third is padding: the lowest number of bf16, which each storage dtype has.
OpCase text(std::string name, int64_t heads, int64_t tokens, int64_t d) {
  auto c = image(std::move(name), heads, tokens, d);
  c.in[0] = c.in[0] / std::sqrt(static_cast<double>(d));
  auto bias = spread({2, heads, tokens, tokens}, 5);
  bias.select(0, 1).narrow(-1, tokens - tokens / 3, tokens / 3).fill_(std::numeric_limits<c10::BFloat16>::lowest());
  c.in.push_back(bias);
  return c;
}

std::vector<OpCase> cases() {
  return {image("10 tokens", 3, 10, 14), image("ViT-H's 257 tokens", 2, 257, 80), image("sharp", 2, 33, 32, 4.0)};
}
std::vector<OpCase> biased_cases() { return {text("13 tokens", 3, 13, 12), text("more than a block", 2, 150, 64)}; }

}  // namespace

const OpRow& encoder_attention_row() {
  // Worst measured: fp64 11 u at 'sharp', fp32 8.6 u at 'sharp', bf16 0.56 u at 'ViT-H's 257 tokens'; own: fp64 7.3 u
  // at 'ViT-H's 257 tokens', fp32 6.5 u at 'sharp', bf16 0.43 u at 'ViT-H's 257 tokens'. Largest error there, fp32:
  // [2658] got 0x1.eb4c9ep-11 want 0x1.eba7ef3cdaca6p-11 ('sharp').
  static const OpRow row{"attention, scaled",
                         reference,
                         run,
                         cases,
                         {{at::kDouble, {}, 22}, {at::kFloat, {}, 17}, {at::kBFloat16, {}, 0.8}},
                         {{"own", run_own, {{at::kDouble, {}, 15}, {at::kFloat, {}, 13}, {at::kBFloat16, {}, 0.7}}}}};
  return row;
}

const OpRow& encoder_attention_bias_row() {
  // Worst measured, all at 'more than a block': fp64 6.1 u, fp32 5.3 u, bf16 0.51 u; own: fp64 5.3 u, fp32 4.1 u, bf16
  // 0.42 u. Largest error there, fp32: [35770] got -0x1.e1572p-18 want -0x1.e2fd9210018p-18.
  static const OpRow row{"attention, position bias and padding",
                         reference,
                         run,
                         biased_cases,
                         {{at::kDouble, {}, 12}, {at::kFloat, {}, 11}, {at::kBFloat16, {}, 0.8}},
                         {{"own", run_own, {{at::kDouble, {}, 10}, {at::kFloat, {}, 8}, {at::kBFloat16, {}, 0.7}}}}};
  return row;
}

}  // namespace parity
