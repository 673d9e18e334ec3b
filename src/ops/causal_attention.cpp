#include "ops/causal_attention.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "core/error.hpp"
#include "ops/fused_attention.hpp"
#include "ops/own.hpp"

namespace parity {
namespace ops {
namespace {

// (tokens, keys) bool: which keys a query sees.
at::Tensor seen_keys(int64_t tokens, int64_t keys, int64_t window) {
  const auto key = at::arange(keys).unsqueeze(0), query = at::arange(keys - tokens, keys).unsqueeze(1);
  const auto sees = key <= query;
  return window > 0 ? sees & (key > query - window) : sees;
}

at::Tensor for_each_head(const at::Tensor& x, int64_t heads) {
  return x.size(1) == heads ? x : x.repeat_interleave(heads / x.size(1), 1);
}

// transformers, modeling_gpt_oss.py, eager_attention_forward
at::Tensor with_sinks(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const CausalForm& form) {
  const auto keys = for_each_head(k, q.size(1)), values = for_each_head(v, q.size(1));
  auto scores = at::matmul(q, keys.transpose(2, 3)) * (1 / std::sqrt(static_cast<double>(q.size(3))));
  const auto sees = seen_keys(q.size(2), k.size(2), form.window);
  scores = scores.masked_fill(sees.logical_not(), -std::numeric_limits<double>::infinity());
  const auto sink = form.sinks.to(q.scalar_type()).view({1, -1, 1, 1}).expand({q.size(0), -1, q.size(2), -1});
  auto all = at::cat({scores, sink}, -1);
  all = at::softmax(all - all.amax(-1, /*keepdim=*/true), -1);
  return at::matmul(all.slice(-1, 0, k.size(2)), values);
}

}  // namespace

void check_causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const CausalForm& form) {
  const bool fits = q.dim() == 4 && k.dim() == 4 && k.sizes() == v.sizes() && q.size(0) == k.size(0) &&
                    q.size(3) == k.size(3) && k.size(1) > 0 && q.size(1) % k.size(1) == 0 && q.size(2) <= k.size(2) &&
                    (!form.sinks.defined() || form.sinks.numel() == q.size(1));
  if (!fits)
    throw Error(fmt::format("[attention] queries [{}] do not fit keys [{}] and values [{}]", fmt::join(q.sizes(), ","),
                            fmt::join(k.sizes(), ","), fmt::join(v.sizes(), ",")));
}

at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const CausalForm& form) {
  check_causal_attention(q, k, v, form);
  if (form.sinks.defined()) return with_sinks(q, k, v, form);
  const int64_t tokens = q.size(2), keys = k.size(2);
  const bool square = tokens == keys && form.window == 0;
  const bool all_seen = tokens == 1 && (form.window == 0 || form.window >= keys);
  const at::Tensor mask = square || all_seen ? at::Tensor() : seen_keys(tokens, keys, form.window);
  return fused_attention(q, k, v, {mask, square && tokens > 1, std::nullopt, /*enable_gqa=*/k.size(1) != q.size(1)});
}

}  // namespace ops

namespace {

constexpr int64_t kWindow = 5;

// The definition, one query after the other; the sink's weight counts in the sum and is thrown away.
at::Tensor causal_reference(const OpCase& c, int64_t window) {
  const auto qs = c.in[0].accessor<double, 4>(), ks = c.in[1].accessor<double, 4>(), vs = c.in[2].accessor<double, 4>();
  const int64_t heads = qs.size(1), queries = qs.size(2), d = qs.size(3), keys = ks.size(2);
  auto out = at::zeros(c.in[0].sizes(), at::kDouble);
  auto ys = out.accessor<double, 4>();
  for (int64_t row = 0; row < qs.size(0) * heads * queries; ++row) {
    const int64_t b = row / (heads * queries), head = row / queries % heads, i = row % queries;
    const int64_t group = head * ks.size(1) / heads, last = keys - queries + i;
    const int64_t first = window ? std::max<int64_t>(0, last - window + 1) : 0;
    std::vector<long double> weight(keys, 0);
    long double total = c.in.size() > 3 ? std::exp(static_cast<long double>(c.in[3][head].item<double>())) : 0;
    for (int64_t j = first; j <= last; ++j) {
      long double dot = 0;
      for (int64_t e = 0; e < d; ++e) dot += static_cast<long double>(qs[b][head][i][e]) * ks[b][group][j][e];
      total += weight[j] = std::exp(dot / std::sqrt(static_cast<long double>(d)));  // no overflow: |score| < 1000
    }
    for (int64_t j = first; j <= last; ++j)
      for (int64_t e = 0; e < d; ++e) ys[b][head][i][e] += static_cast<double>(weight[j] / total * vs[b][group][j][e]);
  }
  return out;
}
at::Tensor reference(const OpCase& c) { return causal_reference(c, 0); }
at::Tensor reference_window(const OpCase& c) { return causal_reference(c, kWindow); }

template <int64_t window>
at::Tensor run(const OpCase& c) {
  return ops::causal_attention(c.in[0], c.in[1], c.in[2], {window, c.in.size() > 3 ? c.in[3] : at::Tensor()});
}

template <int64_t window>
at::Tensor run_own(const OpCase& c) {
  return ops::own_causal_attention(c.in[0], c.in[1], c.in[2], {window, c.in.size() > 3 ? c.in[3] : at::Tensor()});
}

OpCase tokens_over_keys(std::string name, int64_t heads, int64_t key_heads, int64_t tokens, int64_t keys, int64_t d,
                        double scale = 1) {
  const auto seed = static_cast<uint64_t>(tokens * 1000 + keys);
  return {std::move(name),
          {spread({2, heads, tokens, d}, seed, scale), spread({2, key_heads, keys, d}, seed + 1, scale),
           spread({2, key_heads, keys, d}, seed + 2)}};
}

// Heads of 20 fill no vector; 70 keys are more than one block of the one-pass kernel.
std::vector<OpCase> cases() {
  return {tokens_over_keys("all tokens", 3, 3, 9, 9, 20), tokens_over_keys("one token, cached", 3, 3, 1, 70, 64),
          tokens_over_keys("grouped heads", 6, 2, 4, 33, 20), tokens_over_keys("sharp", 2, 2, 3, 40, 32, 4.0)};
}
std::vector<OpCase> sinks_cases() {
  auto all = cases();
  for (auto& c : all) c.in.push_back(spread({c.in[0].size(1)}, 77, 1.5));
  return all;
}

}  // namespace

const OpRow& causal_attention_row() {
  // Worst measured: fp64 5.6 u at 'one token, cached', fp32 6.7 u at 'sharp', bf16 0.6 u at 'one token, cached'; own:
  // fp64 4.6 u at 'sharp', fp32 6.1 u at 'sharp', bf16 0.47 u at 'one token, cached'.
  // Largest error there, fp32: [183] got 0x1.d1480ep-7, own 0x1.d143cp-7, want 0x1.d14dd9d38e57ap-7 ('sharp').
  static const OpRow row{"attention, causal",
                         reference,
                         run<0>,
                         cases,
                         {{at::kDouble, {}, 11}, {at::kFloat, {}, 13}, {at::kBFloat16, {}, 0.8}},
                         {{"own", run_own<0>, {{at::kDouble, {}, 9}, {at::kFloat, {}, 12}, {at::kBFloat16, {}, 0.7}}}}};
  return row;
}

const OpRow& causal_attention_window_row() {
  // Worst measured: fp64 2.6 u at 'sharp', fp32 1.6 u at 'grouped heads', bf16 0.47 u at 'grouped heads'; own: fp64 1.9
  // u, fp32 2.5 u, both at 'sharp', bf16 0.41 u at 'one token, cached'. LibTorch's in fp32 on an emulated Haswell: 4.3
  // u at 'sharp' (scripts/op_bounds).
  static const OpRow row{
      "attention, causal, window",
      reference_window,
      run<kWindow>,
      cases,
      {{at::kDouble, {}, 5.2}, {at::kFloat, {}, 8.5}, {at::kBFloat16, {}, 0.8}},
      {{"own", run_own<kWindow>, {{at::kDouble, {}, 3.7}, {at::kFloat, {}, 5}, {at::kBFloat16, {}, 0.7}}}}};
  return row;
}

const OpRow& causal_attention_sinks_row() {
  // Worst measured: fp64 2.7 u at 'sharp', fp32 1.5 u at 'one token, cached', bf16 0.83 u at 'grouped heads', where
  // every step rounds; own: fp64 2 u, fp32 2.6 u, both at 'sharp', bf16 0.46 u at 'grouped heads'. LibTorch's in fp32
  // on an emulated Haswell: 4.1 u at 'sharp' (scripts/op_bounds).
  static const OpRow row{
      "attention, causal, window, sinks",
      reference_window,
      run<kWindow>,
      sinks_cases,
      {{at::kDouble, {}, 5.3}, {at::kFloat, {}, 8.3}, {at::kBFloat16, {}, 1.6}},
      {{"own", run_own<kWindow>, {{at::kDouble, {}, 4}, {at::kFloat, {}, 5.1}, {at::kBFloat16, {}, 0.7}}}}};
  return row;
}

}  // namespace parity
