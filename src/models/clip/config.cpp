#include "models/clip/config.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "models/config_keys.hpp"

namespace parity {
namespace {

constexpr ConfigKeys kClipKeys{"clip", "a CLIP image encoder's"};

ClipActivation clip_activation(const nlohmann::json& config) {
  const auto name = kClipKeys.take<std::string>(config, "hidden_act", "quick_gelu");
  if (name == "gelu") return ClipActivation::gelu;
  if (name == "quick_gelu") return ClipActivation::quick_gelu;
  throw Error(fmt::format("[clip] hidden_act '{}' is not written here, only 'gelu' and 'quick_gelu'", name));
}

}  // namespace

ClipConfig clip_config(const nlohmann::json& config) {
  if (!config.is_object())
    throw Error("[clip] the recording has no model configuration: record it with the model's config");
  const auto count = [&](const char* key, std::optional<int64_t> otherwise = std::nullopt) {
    const auto n = kClipKeys.take<int64_t>(config, key, otherwise);
    if (n <= 0 || n > (int64_t{1} << 32)) throw Error(fmt::format("[clip] impossible configuration: {} {}", key, n));
    return n;
  };
  ClipConfig c;
  c.dim = count("hidden_size"), c.inner = count("intermediate_size"), c.layers = count("num_hidden_layers");
  c.heads = count("num_attention_heads"), c.channels = count("num_channels", 3);
  c.image = count("image_size"), c.patch = count("patch_size");
  c.activation = clip_activation(config);
  c.eps = kClipKeys.take<double>(config, "layer_norm_eps", 1e-5);
  if (c.dim % c.heads != 0)
    throw Error(fmt::format(
        "[clip] impossible configuration: hidden_size {} is not a multiple of num_attention_heads {}", c.dim, c.heads));
  if (c.patch > c.image)
    throw Error(fmt::format("[clip] impossible configuration: patch_size {} of image_size {}", c.patch, c.image));
  return c;
}

Parameters clip_parameters(const ClipConfig& c) {
  using Shape = std::vector<int64_t>;
  Parameters all{{"embeddings.class_embedding", Shape{c.dim}},
                 {"embeddings.patch_embedding.weight", Shape{c.dim, c.channels, c.patch, c.patch}},
                 {"embeddings.position_embedding.weight", Shape{c.tokens(), c.dim}}};
  const auto pair = [&](const std::string& name, Shape weight) {
    const auto out = weight.front();
    all.emplace_back(name + ".weight", std::move(weight));
    all.emplace_back(name + ".bias", Shape{out});
  };
  pair("pre_layrnorm", {c.dim});  // transformers' spelling
  for (int64_t i = 0; i < c.layers; ++i) {
    const auto layer = fmt::format("encoder.layers.{}.", i);
    pair(layer + "layer_norm1", {c.dim});
    for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"})
      pair(layer + "self_attn." + name, {c.dim, c.dim});
    pair(layer + "layer_norm2", {c.dim});
    pair(layer + "mlp.fc1", {c.inner, c.dim}), pair(layer + "mlp.fc2", {c.dim, c.inner});
  }
  pair("post_layernorm", {c.dim});
  return all;
}

}  // namespace parity
