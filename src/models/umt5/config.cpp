#include "models/umt5/config.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "models/config_keys.hpp"

namespace parity {
namespace {

constexpr ConfigKeys kUmt5Keys{"umt5", "a UMT5 encoder's"};

// What a configuration may ask for and this model does not have.
void refuse_umt5(const nlohmann::json& config) {
  const auto form = kUmt5Keys.take<std::string>(config, "feed_forward_proj", "gated-gelu");
  if (form != "gated-gelu")
    throw Error(fmt::format("[umt5] feed_forward_proj '{}' is not written here, only 'gated-gelu'", form));
  if (kUmt5Keys.take<bool>(config, "is_decoder", false)) throw Error("[umt5] is_decoder true is not written here");
}

int64_t umt5_count(const nlohmann::json& config, const char* key, std::optional<int64_t> otherwise = std::nullopt) {
  const auto n = kUmt5Keys.take<int64_t>(config, key, otherwise);
  if (n <= 0 || n > (int64_t{1} << 32)) throw Error(fmt::format("[umt5] impossible configuration: {} {}", key, n));
  return n;
}

}  // namespace

Umt5Config umt5_config(const nlohmann::json& config) {
  if (!config.is_object())
    throw Error("[umt5] the recording has no model configuration: record it with the model's config");
  refuse_umt5(config);
  Umt5Config c;
  c.vocabulary = umt5_count(config, "vocab_size"), c.dim = umt5_count(config, "d_model");
  c.layers = umt5_count(config, "num_layers"), c.heads = umt5_count(config, "num_heads");
  c.head_dim = umt5_count(config, "d_kv"), c.inner = umt5_count(config, "d_ff");
  c.buckets.buckets = umt5_count(config, "relative_attention_num_buckets", 32);
  c.buckets.max_distance = umt5_count(config, "relative_attention_max_distance", 128);
  c.eps = kUmt5Keys.take<double>(config, "layer_norm_epsilon", 1e-6);
  c.padding = kUmt5Keys.take<int64_t>(config, "pad_token_id", 0);
  if (c.buckets.buckets < 4 || c.buckets.max_distance <= c.buckets.buckets / 4)
    throw Error(
        fmt::format("[umt5] impossible configuration: relative_attention_num_buckets {} with "
                    "relative_attention_max_distance {}",
                    c.buckets.buckets, c.buckets.max_distance));
  if (c.padding < 0 || c.padding >= c.vocabulary)
    throw Error(fmt::format("[umt5] impossible configuration: pad_token_id {} of {} words", c.padding, c.vocabulary));
  return c;
}

Parameters umt5_parameters(const Umt5Config& c) {
  using Shape = std::vector<int64_t>;
  Parameters all{{"shared.weight", Shape{c.vocabulary, c.dim}}};
  for (int64_t i = 0; i < c.layers; ++i) {
    const auto add = [&](const char* name, Shape shape) {
      all.emplace_back(fmt::format("encoder.block.{}.layer.{}.weight", i, name), std::move(shape));
    };
    for (const char* name : {"0.SelfAttention.q", "0.SelfAttention.k", "0.SelfAttention.v"})
      add(name, {c.heads_dim(), c.dim});
    add("0.SelfAttention.o", {c.dim, c.heads_dim()});
    add("0.SelfAttention.relative_attention_bias", {c.buckets.buckets, c.heads});
    add("0.layer_norm", {c.dim}), add("1.layer_norm", {c.dim});
    add("1.DenseReluDense.wi_0", {c.inner, c.dim}), add("1.DenseReluDense.wi_1", {c.inner, c.dim});
    add("1.DenseReluDense.wo", {c.dim, c.inner});
  }
  all.emplace_back("encoder.final_layer_norm.weight", Shape{c.dim});
  return all;
}

}  // namespace parity
