#include "models/clip/model.hpp"

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "core/error.hpp"

namespace parity {

ClipModel::ClipModel(const ClipConfig& config, Precision precision, const WeightSource& weights, ClipOps ops)
    : config_(config), precision_(precision), ops_(std::move(ops)) {
  const ShapedWeights shaped("clip", clip_parameters(config), weights);
  const auto load = [&](const std::string& name) {
    const auto found = shaped.get(name);
    return found.to(redirect(found.scalar_type(), precision));
  };
  const auto affine = [&](const std::string& name) { return Affine{load(name + ".weight"), load(name + ".bias")}; };
  recorded_ = shaped.get("embeddings.patch_embedding.weight").scalar_type();
  class_ = load("embeddings.class_embedding"), patches_ = load("embeddings.patch_embedding.weight");
  positions_ = load("embeddings.position_embedding.weight");
  pre_norm_ = affine("pre_layrnorm"), post_norm_ = affine("post_layernorm");
  for (int64_t i = 0; i < config.layers; ++i) {
    const auto at = [&](const char* name) { return affine(fmt::format("encoder.layers.{}.{}", i, name)); };
    layers_.push_back({at("layer_norm1"), at("self_attn.q_proj"), at("self_attn.k_proj"), at("self_attn.v_proj"),
                       at("self_attn.out_proj"), at("layer_norm2"), at("mlp.fc1"), at("mlp.fc2")});
  }
}

at::Tensor ClipModel::linear(std::string_view name, const at::Tensor& x, const Affine& w, Probe& probe) const {
  const auto rows = ops_.linear(x.reshape({-1, x.size(-1)}), w.weight, w.bias);
  return probe(name, rows.view({x.size(0), x.size(1), -1}));
}

at::Tensor ClipModel::norm(std::string_view name, const at::Tensor& x, const Affine& w, Probe& probe) const {
  return probe(name, ops_.norm(x, w.weight, w.bias, config_.eps));
}

at::Tensor ClipModel::embed(const at::Tensor& pixels, Probe& probe) const {
  const std::vector<int64_t> expected{pixels.dim() ? pixels.size(0) : 0, config_.channels, config_.image,
                                      config_.image};
  if (pixels.sizes() != at::IntArrayRef(expected))
    throw Error(fmt::format("[clip] the pixels are [{}]; (batch, {}, {}, {}) is expected",
                            fmt::join(pixels.sizes(), ", "), config_.channels, config_.image, config_.image));
  const Probe::Scope in_embeddings(probe, "embeddings");
  auto x = pixels.to(redirect(recorded_, precision_));
  if (pixels.scalar_type() != recorded_) x = probe("/_to_copy.0", x);
  x = ops::tokens_of(probe(".patch_embedding", ops_.patch_embedding(x, patches_, {})));
  x = probe("/cat.0", ops_.join(class_.expand({x.size(0), 1, -1}), x));
  const auto places = probe(".position_embedding", at::embedding(positions_, ops_.positions(config_.tokens())));
  return probe("", x + places);
}

at::Tensor ClipModel::attention(const ClipLayer& w, const at::Tensor& x, Probe& probe) const {
  const Probe::Scope in_attention(probe, ".self_attn");
  const auto heads = [&](std::string_view name, const Affine& weight) {
    const auto y = linear(name, x, weight, probe);
    return y.view({x.size(0), x.size(1), config_.heads, config_.head_dim()}).transpose(1, 2);
  };
  const auto q = heads(".q_proj", w.q), k = heads(".k_proj", w.k), v = heads(".v_proj", w.v);
  const ScoreForm form{std::pow(static_cast<double>(config_.head_dim()), -0.5)};
  const auto y = probe("/attention.0", ops_.attention(q, k, v, form));
  return linear(".out_proj", y.transpose(1, 2).reshape(x.sizes()), w.out, probe);
}

ClipOutput ClipModel::forward(const at::Tensor& pixels, Probe& probe) const {
  const c10::NoGradGuard no_grad;
  auto x = embed(pixels, probe);
  x = ops_.pre_norm ? probe("pre_layrnorm", ops_.pre_norm(x)) : norm("pre_layrnorm", x, pre_norm_, probe);
  std::vector<at::Tensor> hidden{x};
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto& w = layers_[i];
    const Probe::Scope in_layer(probe, fmt::format("encoder.layers.{}", i));
    x = probe("/add.0", x + attention(w, norm(".layer_norm1", x, w.norm1, probe), probe));
    auto y = linear(".mlp.fc1", norm(".layer_norm2", x, w.norm2, probe), w.fc1, probe);
    y = probe(".mlp.activation_fn", ops_.activation(y, config_.activation));
    x = probe("", x + linear(".mlp.fc2", y, w.fc2, probe));
    hidden.push_back(x);
  }
  const auto pooled = norm("post_layernorm", x.select(1, 0), post_norm_, probe);
  return {x, pooled, probe("penultimate", ops_.penultimate(hidden))};
}

}  // namespace parity
