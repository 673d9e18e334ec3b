#include "models/clip/original.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>
#include <utility>

namespace parity {
namespace {

using ClipName = std::pair<std::string_view, std::string_view>;  // transformers', the originals'

constexpr std::array kClipOutside{ClipName{"embeddings.class_embedding", "visual.cls_embedding[0]"},
                                  ClipName{"embeddings.patch_embedding.weight", "visual.patch_embedding.weight"},
                                  ClipName{"embeddings.position_embedding.weight", "visual.pos_embedding[0]"},
                                  ClipName{"pre_layrnorm.weight", "visual.pre_norm.weight"},
                                  ClipName{"pre_layrnorm.bias", "visual.pre_norm.bias"},
                                  ClipName{"post_layernorm.weight", "visual.post_norm.weight"},
                                  ClipName{"post_layernorm.bias", "visual.post_norm.bias"}};
constexpr std::array kClipInLayer{ClipName{"layer_norm1.", "norm1."}, ClipName{"self_attn.out_proj.", "attn.proj."},
                                  ClipName{"layer_norm2.", "norm2."}, ClipName{"mlp.fc1.", "mlp.0."},
                                  ClipName{"mlp.fc2.", "mlp.2."}};
constexpr std::array<std::string_view, 3> kProjections{"self_attn.q_proj.", "self_attn.k_proj.", "self_attn.v_proj."};

int64_t layers_of(const Checkpoint& stored) {
  int64_t layers = 0;
  while (stored.has(fmt::format("visual.transformer.{}.norm1.weight", layers))) ++layers;
  return layers;
}

}  // namespace

void take_clip_original_apart(Checkpoint& stored) {
  const int64_t dim = stored.shape("visual.patch_embedding.weight").at(0);
  stored.take_apart("visual.cls_embedding", 1, {dim});
  stored.take_apart("visual.pos_embedding", 1, {stored.shape("visual.pos_embedding").at(1), dim});
  for (int64_t layer = 0; layer < layers_of(stored); ++layer) {
    const std::string name = fmt::format("visual.transformer.{}.attn.to_qkv.", layer);
    stored.take_apart(name + "weight", 3, {dim, dim});
    stored.take_apart(name + "bias", 3, {dim});
  }
}

std::string clip_original_name(const std::string& transformers) {
  constexpr std::string_view kLayers = "encoder.layers.";
  for (const auto& [name, original] : kClipOutside)
    if (transformers == name) return std::string(original);
  const size_t end = transformers.find('.', kLayers.size());
  if (!transformers.starts_with(kLayers) || end == std::string::npos) return transformers;
  const std::string layer = "visual.transformer." + transformers.substr(kLayers.size(), end - kLayers.size());
  const std::string_view inside = std::string_view(transformers).substr(end + 1);
  for (size_t part = 0; part < kProjections.size(); ++part)
    if (inside.starts_with(kProjections[part]))
      return fmt::format("{}.attn.to_qkv.{}[{}]", layer, inside.substr(kProjections[part].size()), part);
  for (const auto& [begin, original] : kClipInLayer)
    if (inside.starts_with(begin)) return fmt::format("{}.{}{}", layer, original, inside.substr(begin.size()));
  return transformers;
}

bool clip_original_surplus(const std::string& stored_name) {
  return stored_name.starts_with("textual.") || stored_name.starts_with("visual.head") || stored_name == "log_scale";
}

nlohmann::json clip_original_config(const Checkpoint& stored, const nlohmann::json& settings) {
  const auto& patches = stored.shape("visual.patch_embedding.weight");
  const int64_t tokens = stored.shape("visual.pos_embedding[0]").at(0) - 1;
  nlohmann::json config{{"hidden_size", patches.at(0)},
                        {"num_channels", patches.at(1)},
                        {"patch_size", patches.at(2)},
                        {"image_size", std::llround(std::sqrt(static_cast<double>(tokens))) * patches.at(2)},
                        {"intermediate_size", stored.shape("visual.transformer.0.mlp.0.weight").at(0)},
                        {"num_hidden_layers", layers_of(stored)},
                        {"num_attention_heads", 16},
                        {"hidden_act", "gelu"},
                        {"layer_norm_eps", 1e-5}};
  config.update(settings);
  return config;
}

}  // namespace parity
