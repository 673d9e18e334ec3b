#include "models/umt5/original.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

namespace parity {
namespace {

using Umt5Name = std::pair<std::string_view, std::string_view>;  // transformers', the originals'

constexpr std::array kUmt5Outside{Umt5Name{"shared.weight", "token_embedding.weight"},
                                  Umt5Name{"encoder.final_layer_norm.weight", "norm.weight"}};
constexpr std::array kUmt5InBlock{
    Umt5Name{"layer.0.SelfAttention.relative_attention_bias.", "pos_embedding.embedding."},
    Umt5Name{"layer.0.SelfAttention.", "attn."},
    Umt5Name{"layer.0.layer_norm.", "norm1."},
    Umt5Name{"layer.1.layer_norm.", "norm2."},
    Umt5Name{"layer.1.DenseReluDense.wi_0.", "ffn.gate.0."},
    Umt5Name{"layer.1.DenseReluDense.wi_1.", "ffn.fc1."},
    Umt5Name{"layer.1.DenseReluDense.wo.", "ffn.fc2."}};

}  // namespace

std::string umt5_original_name(const std::string& transformers) {
  constexpr std::string_view kBlock = "encoder.block.";
  for (const auto& [name, original] : kUmt5Outside)
    if (transformers == name) return std::string(original);
  const size_t end = transformers.find('.', kBlock.size());
  if (!transformers.starts_with(kBlock) || end == std::string::npos) return transformers;
  const std::string_view inside = std::string_view(transformers).substr(end + 1);
  for (const auto& [begin, original] : kUmt5InBlock)
    if (inside.starts_with(begin))
      return fmt::format("blocks.{}.{}{}", transformers.substr(kBlock.size(), end - kBlock.size()), original,
                         inside.substr(begin.size()));
  return transformers;
}

nlohmann::json umt5_original_config(const Checkpoint& stored, const nlohmann::json& settings) {
  const auto size = [&](const char* name, size_t axis) { return stored.shape(name).at(axis); };
  int64_t layers = 0;
  while (stored.has(fmt::format("blocks.{}.norm1.weight", layers))) ++layers;
  const int64_t heads = size("blocks.0.pos_embedding.embedding.weight", 1);
  nlohmann::json config{{"vocab_size", size("token_embedding.weight", 0)},
                        {"d_model", size("token_embedding.weight", 1)},
                        {"d_kv", size("blocks.0.attn.q.weight", 0) / heads},
                        {"num_heads", heads},
                        {"d_ff", size("blocks.0.ffn.fc1.weight", 0)},
                        {"num_layers", layers},
                        {"relative_attention_num_buckets", size("blocks.0.pos_embedding.embedding.weight", 0)},
                        {"relative_attention_max_distance", 128},
                        {"layer_norm_epsilon", 1e-6}};
  config.update(settings);
  return config;
}

}  // namespace parity
