#include "models/gpt_oss/self_pairs.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "ops/mxfp4.hpp"
#include "ops/own.hpp"

namespace parity {
namespace {

using at::Tensor;

GptOssModel model_with(const GptOssParts& parts, GptOssOps ops) {
  return {parts.config, parts.precision, parts.weights, std::move(ops)};
}

void cached_pairs(const GptOssParts& parts, const Tensor& ids, std::vector<SelfPair>& pairs) {
  NoProbe off;
  const auto model = model_with(parts, parts.ops);
  const int64_t tokens = ids.size(1), prompt = std::max<int64_t>(tokens / 2, 1);
  const auto whole = model.forward(ids, nullptr, off);
  GptOssCache cache = model.cache(ids.size(0), tokens);
  const auto add = [&](int64_t position, const Tensor& logits) {
    pairs.push_back({fmt::format("cached/position.{}", position), "attention", whole.select(1, position).contiguous(),
                     logits.contiguous()});
  };
  const auto first = model.forward(ids.narrow(1, 0, prompt), &cache, off);
  for (int64_t i = 0; i < prompt; ++i) add(i, first.select(1, i));
  for (int64_t i = prompt; i < tokens; ++i) add(i, model.forward(ids.narrow(1, i, 1), &cache, off).select(1, 0));
}

// Keeps every point of one forward.
class KeepingProbe final : public Probe {
 public:
  KeepingProbe() : Probe(true) {}
  const Tensor& at(const std::string& path) const { return kept_.at(path); }

 private:
  Tensor seen(const std::string& path, Tensor value) override { return kept_[path] = value; }
  std::map<std::string, Tensor> kept_;
};

// Both forms of every layer's experts on what the layer gets in a forward.
void grouped_pairs(const GptOssParts& parts, const Tensor& ids, std::vector<SelfPair>& pairs) {
  KeepingProbe seen;
  const auto model = model_with(parts, parts.ops);
  model.forward(ids, nullptr, seen);
  for (int64_t i = 0; i < parts.config.layers; ++i) {
    const auto layer = fmt::format("model.layers.{}", i);
    const auto rows = seen.at(layer + ".post_attention_layernorm").reshape({-1, parts.config.dim});
    const Routing routing{seen.at(layer + ".mlp.router[1]"), seen.at(layer + ".mlp.router[2]")};
    pairs.push_back(
        {fmt::format("grouped/layer.{}", i), "linear",
         looped_experts(parts.config, parts.ops, model.layers()[static_cast<size_t>(i)].experts, rows, routing),
         seen.at(layer + ".mlp.experts")});
  }
}

// Every expert's products on all tokens of its layer, whoever they are routed to: the shapes hang on nothing computed.
void mxfp4_pairs(const GptOssParts& parts, const Tensor& ids, std::vector<SelfPair>& pairs) {
  const auto& c = parts.config;
  if (c.dim % kMxfp4Block != 0 || c.inner % kMxfp4Block != 0) return;
  KeepingProbe seen;
  NoProbe off;
  const auto model = model_with(parts, parts.ops);
  model.forward(ids, nullptr, seen);
  const auto add = [&](std::string path, const Tensor& x, const Tensor& weight) {
    const Mxfp4Weight packed = ops::quantise_mxfp4(parts.ops.outputs_first ? weight : weight.t());
    const auto y = at::linear(x, ops::dequantise(packed, x.scalar_type()));
    pairs.push_back({std::move(path), "linear", y, ops::own_linear(x, packed, {})});
    return y;
  };
  for (int64_t i = 0; i < c.layers; ++i) {
    const auto& experts = model.layers()[static_cast<size_t>(i)].experts;
    const auto x = seen.at(fmt::format("model.layers.{}.post_attention_layernorm", i)).reshape({-1, c.dim});
    for (int64_t e = 0; e < c.experts; ++e) {
      const auto path = fmt::format("mxfp4/layer.{}.expert.{}.", i, e);
      const auto y = add(path + "gate_up", x, experts.gate_up.plain[e]);
      add(path + "down", clamped_swiglu(c, y, off), experts.down.plain[e]);
    }
  }
}

// (batch, heads, tokens, keys): the definition, written apart from the ops that are judged by it.
Tensor attention_weights(const Tensor& q, const Tensor& k, const CausalForm& form) {
  const int64_t tokens = q.size(2), keys = k.size(2);
  auto weights = (at::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3)))).exp();
  const auto behind = at::arange(keys - tokens, keys).unsqueeze(1) - at::arange(keys);
  weights = weights * (behind >= 0);
  if (form.window > 0) weights = weights * (behind < form.window);
  const auto sink = form.sinks.to(at::kDouble).exp().view({1, -1, 1, 1});
  return weights / (weights.sum(-1, /*keepdim=*/true) + sink);
}

// What rounding keys and values to their steps makes of attention's result, errors independent and uniform over a step,
// to first order: a value's error comes through its weight, a key's through its score, and a score's moves the weights.
Tensor expected_of_fp8(const Tensor& q, const Tensor& k, const Tensor& v, const CausalForm& form) {
  const auto each = [&](const Tensor& t) { return t.repeat_interleave(q.size(1) / t.size(1), 1); };
  const auto variance = [&](const Tensor& t) { return each(ops::fp8_steps(ops::fp8_rows(t)).square() / 12); };
  const auto queries = q.to(at::kDouble), values = each(v.to(at::kDouble));
  const auto weights = attention_weights(queries, each(k.to(at::kDouble)), form);
  const auto out = at::matmul(weights, values);
  const auto scores = at::matmul(queries.square(), variance(k).transpose(2, 3)) / static_cast<double>(q.size(3));
  const auto moved = weights.square() * scores;
  // the sum over keys of moved * (value - out)^2, the square written out
  const auto by_keys = at::matmul(moved, values.square()) - 2 * out * at::matmul(moved, values) +
                       out.square() * moved.sum(-1, /*keepdim=*/true);
  return (at::matmul(weights.square(), variance(v)) + by_keys.clamp_min(0)).sqrt();
}

// Attention of every layer on what it gets in a forward: without repeated key heads, and over a cache in fp8.
void attention_pairs(const GptOssParts& parts, const Tensor& ids, std::vector<SelfPair>& pairs) {
  GptOssOps ops = parts.ops;
  GptOssConfig one_layer = parts.config;
  one_layer.layers = 1;
  int64_t layer = 0;
  ops.attention = [&](const Tensor& q, const Tensor& k, const Tensor& v, const CausalForm& form) {
    pairs.push_back({fmt::format("heads/layer.{}", layer), "attention", ops::causal_attention(q, k, v, form),
                     ops::own_causal_attention(q, k, v, form)});
    const auto y = parts.ops.attention(q, k, v, form);
    if (parts.precision != Precision::fp64) {
      GptOssCache cache(one_layer, k.size(0), k.size(2), k.scalar_type(), CacheStorage::fp8);
      const auto [keys, values] = cache.append(0, 0, k, v, parts.ops.widen);
      pairs.push_back({fmt::format("fp8/layer.{}", layer), "attention", y, parts.ops.attention(q, keys, values, form),
                       expected_of_fp8(q, k, v, form)});
    }
    ++layer;
    return y;
  };
  NoProbe off;
  model_with(parts, ops).forward(ids, nullptr, off);
}

}  // namespace

std::vector<SelfPair> gpt_oss_pairs(const GptOssParts& parts, const Tensor& ids) {
  std::vector<SelfPair> pairs;
  for (const auto add : {cached_pairs, grouped_pairs, attention_pairs, mxfp4_pairs}) add(parts, ids, pairs);
  return pairs;
}

}  // namespace parity
