#include "models/gpt_oss/model.hpp"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "ops/rms_norm.hpp"
#include "ops/rope_halves.hpp"

namespace parity {

GptOssModel::GptOssModel(const GptOssConfig& config, Precision precision, const WeightSource& source, GptOssOps ops)
    : config_(config), precision_(precision), ops_(std::move(ops)) {
  const bool packed = source.has("model.layers.0.mlp.experts.gate_up_proj_blocks");
  const ShapedWeights weights("gpt_oss",
                              gpt_oss_parameters(config, packed ? ExpertStorage::mxfp4 : ExpertStorage::plain), source);
  const auto load = [&](const std::string& name) {
    const auto found = weights.get(name);
    return found.to(redirect(found.scalar_type(), precision));
  };
  const auto linear_of = [&](const std::string& name) {
    const bool bias = weights.has(name + ".bias");
    return Affine{load(name + ".weight"), bias ? load(name + ".bias") : at::Tensor()};
  };
  const auto experts_of = [&](const std::string& name) {
    if (packed) return ExpertMatrices{{}, {weights.get(name + "_blocks").flatten(2), weights.get(name + "_scales")}};
    const auto w = load(name);
    return ExpertMatrices{ops_.outputs_first ? w.transpose(1, 2).contiguous() : w};
  };
  constexpr const char* kRecorded = "model.rotary_emb.inv_freq";
  const auto computed = ops_.frequencies(config.yarn, config.head_dim);
  const auto recorded = weights.has(kRecorded) ? weights.get(kRecorded) : at::Tensor();
  // A recorded table is a constant of the program: fp64 widens it, it does not form a better one.
  frequencies_ = yarn_table(computed, recorded).to(redirect(at::kFloat, precision));
  embedding_ = load("model.embed_tokens.weight"), norm_ = load("model.norm.weight"), head_ = linear_of("lm_head");
  for (int64_t i = 0; i < config.layers; ++i) {
    const auto layer = fmt::format("model.layers.{}.", i), attention = layer + "self_attn.";
    const auto experts = layer + "mlp.experts.";
    layers_.push_back({load(layer + "input_layernorm.weight"), linear_of(attention + "q_proj"),
                       linear_of(attention + "k_proj"), linear_of(attention + "v_proj"),
                       linear_of(attention + "o_proj"), load(attention + "sinks"),
                       load(layer + "post_attention_layernorm.weight"), linear_of(layer + "mlp.router"),
                       ExpertWeights{experts_of(experts + "gate_up_proj"), load(experts + "gate_up_proj_bias"),
                                     experts_of(experts + "down_proj"), load(experts + "down_proj_bias")}});
  }
  dtype_ = embedding_.scalar_type();
}

GptOssCache GptOssModel::cache(int64_t batch, int64_t positions, CacheStorage storage) const {
  return {config_, batch, positions, dtype_, storage};
}

at::Tensor GptOssModel::linear(std::string_view name, const at::Tensor& x, const Affine& w, Probe& probe) const {
  const auto rows = ops_.linear(x.reshape({-1, x.size(-1)}), w.weight, w.bias);
  return probe(name, x.dim() == 2 ? rows : rows.view({x.size(0), x.size(1), -1}));
}

at::Tensor GptOssModel::norm(std::string_view name, const at::Tensor& x, const at::Tensor& weight, Probe& probe) const {
  return probe(name, ops::rms_norm(x, weight, config_.eps, RmsForm::round_last, precision_));
}

// modeling_gpt_oss.py, GptOssRotaryEmbedding: in fp32 until the end
GptOssModel::Turn GptOssModel::turn(int64_t first, int64_t tokens, Probe& probe) const {
  const Probe::Scope in_rotary(probe, "model.rotary_emb");
  const auto place = at::arange(first, first + tokens).to(frequencies_.scalar_type()).view({1, -1, 1});
  const auto angle = probe("/mul.0", place * frequencies_);
  const double factor = ops_.attention_factor(config_.yarn);
  auto cos = probe("/mul.1", angle.cos() * factor), sin = probe("/mul.2", angle.sin() * factor);
  cos = probe("", cos.to(dtype_)), sin = probe("[1]", sin.to(dtype_));
  return {cos.unsqueeze(1), sin.unsqueeze(1)};
}

at::Tensor GptOssModel::attention(int64_t layer, const at::Tensor& x, const Turn& turn, GptOssCache* cache,
                                  Probe& probe) const {
  const auto& w = layers_[static_cast<size_t>(layer)];
  const Probe::Scope in_attention(probe, ".self_attn");
  const auto heads = [&](const at::Tensor& t) {
    return t.view({t.size(0), t.size(1), -1, config_.head_dim}).transpose(1, 2);
  };
  const auto q_rows = linear(".q_proj", x, w.q, probe), k_rows = linear(".k_proj", x, w.k, probe);
  auto v = heads(linear(".v_proj", x, w.v, probe));
  const auto q = probe("/cat.0", ops::rope_halves(heads(q_rows), turn.cos, turn.sin));
  auto k = probe("/cat.1", ops::rope_halves(heads(k_rows), turn.cos, turn.sin));
  if (cache) std::tie(k, v) = cache->append(layer, ops_.cache_slot(cache->length()), k, v, ops_.widen);
  const auto y = probe("/attention.0", ops_.attention(q, k, v, {config_.window_of(layer), w.sinks}));
  return linear(".o_proj", y.transpose(1, 2).reshape({x.size(0), x.size(1), -1}), w.o, probe);
}

at::Tensor GptOssModel::feed_forward(const GptOssLayer& w, const at::Tensor& x, Probe& probe) const {
  const Probe::Scope in_mlp(probe, ".mlp");
  const auto rows = x.reshape({-1, config_.dim});
  Routing routing;
  {
    const Probe::Scope in_router(probe, ".router");
    const auto logits = linear("", rows, w.router, probe);
    auto [largest, chosen] = at::topk(logits, config_.experts_per_token, -1);
    largest = probe("/topk.0", largest);
    routing.chosen = probe("[2]", chosen);
    routing.weights = probe("[1]", ops_.expert_weights(logits, largest, routing.chosen));
  }
  return grouped_experts(config_, ops_, w.experts, rows, routing, probe).view(x.sizes());
}

at::Tensor GptOssModel::forward(const at::Tensor& ids, GptOssCache* cache, Probe& probe) const {
  const c10::NoGradGuard no_grad;
  if (ids.dim() != 2)
    throw Error(fmt::format("[gpt_oss] the token ids have {} dimensions; (batch, tokens) is expected", ids.dim()));
  auto x = probe("model.embed_tokens", at::embedding(embedding_, ids));
  const auto turned = turn(cache ? cache->length() : 0, ids.size(1), probe);
  for (int64_t i = 0; i < config_.layers; ++i) {
    const auto& w = layers_[static_cast<size_t>(i)];
    const Probe::Scope in_layer(probe, fmt::format("model.layers.{}", i));
    x = probe("/add.0", x + attention(i, norm(".input_layernorm", x, w.attention_norm, probe), turned, cache, probe));
    x = probe("", x + feed_forward(w, norm(".post_attention_layernorm", x, w.mlp_norm, probe), probe));
  }
  if (cache) cache->advance(ids.size(1));
  return linear("lm_head", norm("model.norm", x, norm_, probe), head_, probe);
}

}  // namespace parity
