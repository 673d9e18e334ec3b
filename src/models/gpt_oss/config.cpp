#include "models/gpt_oss/config.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "models/config_keys.hpp"
#include "ops/mxfp4.hpp"

namespace parity {
namespace {

constexpr ConfigKeys kGptOssKeys{"gpt_oss", "a gpt-oss's"};

int64_t positive(const nlohmann::json& config, const char* key) {
  const auto n = kGptOssKeys.take<int64_t>(config, key);
  if (n <= 0 || n > (int64_t{1} << 32)) throw Error(fmt::format("[gpt_oss] impossible configuration: {} {}", key, n));
  return n;
}

Yarn yarn_of(const nlohmann::json& config) {
  const bool published = config.contains("rope_scaling") && config["rope_scaling"].is_object();
  const auto rope = kGptOssKeys.take<nlohmann::json>(config, published ? "rope_scaling" : "rope_parameters");
  const auto type = kGptOssKeys.take<std::string>(rope, "rope_type");
  if (type != "yarn") throw Error(fmt::format("[gpt_oss] rope_type '{}' is not written here, only 'yarn'", type));
  for (const auto* key : {"attention_factor", "mscale", "mscale_all_dim", "partial_rotary_factor"})
    if (rope.contains(key) && !rope[key].is_null()) throw Error(fmt::format("[gpt_oss] {} is not written here", key));
  Yarn y;
  y.theta = kGptOssKeys.take<double>(rope.contains("rope_theta") ? rope : config, "rope_theta", 150000.0);
  y.factor = kGptOssKeys.take<double>(rope, "factor");
  y.beta_fast = kGptOssKeys.take<double>(rope, "beta_fast", 32.0);
  y.beta_slow = kGptOssKeys.take<double>(rope, "beta_slow", 1.0);
  y.truncate = kGptOssKeys.take<bool>(rope, "truncate", true);
  y.original_positions = positive(rope, "original_max_position_embeddings");
  if (!(y.theta > 1 && y.factor > 0 && y.beta_fast > 0 && y.beta_slow > 0))
    throw Error(fmt::format("[gpt_oss] impossible configuration: rope_theta {}, factor {}", y.theta, y.factor));
  return y;
}

// Alternating, a sliding layer first, unless the configuration says otherwise.
std::vector<bool> sliding_of(const nlohmann::json& config, int64_t layers) {
  std::vector<bool> sliding;
  const auto types = kGptOssKeys.take<std::vector<std::string>>(config, "layer_types", std::vector<std::string>{});
  for (int64_t i = 0; types.empty() && i < layers; ++i) sliding.push_back(i % 2 == 0);
  for (const auto& type : types) {
    if (type != "sliding_attention" && type != "full_attention")
      throw Error(fmt::format("[gpt_oss] layer_types '{}' is not written here", type));
    sliding.push_back(type == "sliding_attention");
  }
  if (static_cast<int64_t>(sliding.size()) != layers)
    throw Error(fmt::format("[gpt_oss] impossible configuration: layer_types has {} entries for {} layers",
                            sliding.size(), layers));
  return sliding;
}

void check(const GptOssConfig& c) {
  const auto impossible = [](const std::string& what) {
    throw Error(fmt::format("[gpt_oss] impossible configuration: {}", what));
  };
  if (c.heads % c.key_heads != 0)
    impossible(fmt::format("num_attention_heads {} is not a multiple of num_key_value_heads {}", c.heads, c.key_heads));
  if (c.head_dim % 2 != 0) impossible(fmt::format("head_dim {} is odd", c.head_dim));
  if (c.experts_per_token > c.experts)
    impossible(fmt::format("num_experts_per_tok {} of num_local_experts {}", c.experts_per_token, c.experts));
}

}  // namespace

GptOssConfig gpt_oss_config(const nlohmann::json& config) {
  if (!config.is_object())
    throw Error("[gpt_oss] the recording has no model configuration: record it with the model's config");
  if (kGptOssKeys.take<bool>(config, "tie_word_embeddings", false))
    throw Error("[gpt_oss] tie_word_embeddings true is not written here");
  GptOssConfig c;
  c.vocabulary = positive(config, "vocab_size"), c.dim = positive(config, "hidden_size");
  c.inner = positive(config, "intermediate_size"), c.layers = positive(config, "num_hidden_layers");
  c.heads = positive(config, "num_attention_heads"), c.key_heads = positive(config, "num_key_value_heads");
  c.head_dim = kGptOssKeys.take<int64_t>(config, "head_dim", c.dim / c.heads);
  c.experts = positive(config, "num_local_experts"), c.experts_per_token = positive(config, "num_experts_per_tok");
  c.window = positive(config, "sliding_window");
  c.sliding = sliding_of(config, c.layers);
  c.eps = kGptOssKeys.take<double>(config, "rms_norm_eps", 1e-5);
  c.swiglu_alpha = kGptOssKeys.take<double>(config, "swiglu_alpha", 1.702);
  c.swiglu_limit = kGptOssKeys.take<double>(config, "swiglu_limit", 7.0);
  c.attention_bias = kGptOssKeys.take<bool>(config, "attention_bias", true);
  c.yarn = yarn_of(config);
  check(c);
  return c;
}

Parameters gpt_oss_parameters(const GptOssConfig& c, ExpertStorage storage) {
  using Shape = std::vector<int64_t>;
  Parameters all{{"model.embed_tokens.weight", Shape{c.vocabulary, c.dim}}};
  const auto linear = [&](const std::string& name, int64_t in, int64_t out, bool bias) {
    all.emplace_back(name + ".weight", Shape{out, in});
    if (bias) all.emplace_back(name + ".bias", Shape{out});
  };
  const auto experts = [&](const std::string& name, int64_t in, int64_t out) {
    if (storage == ExpertStorage::plain) {
      all.emplace_back(name, Shape{c.experts, in, out});
    } else {
      all.emplace_back(name + "_blocks", Shape{c.experts, out, in / kMxfp4Block, kMxfp4Block / 2});
      all.emplace_back(name + "_scales", Shape{c.experts, out, in / kMxfp4Block});
    }
    all.emplace_back(name + "_bias", Shape{c.experts, out});
  };
  for (int64_t i = 0; i < c.layers; ++i) {
    const auto layer = fmt::format("model.layers.{}.", i);
    const auto attention = layer + "self_attn.";
    all.emplace_back(layer + "input_layernorm.weight", Shape{c.dim});
    linear(attention + "q_proj", c.dim, c.heads * c.head_dim, c.attention_bias);
    linear(attention + "k_proj", c.dim, c.key_heads * c.head_dim, c.attention_bias);
    linear(attention + "v_proj", c.dim, c.key_heads * c.head_dim, c.attention_bias);
    linear(attention + "o_proj", c.heads * c.head_dim, c.dim, c.attention_bias);
    all.emplace_back(attention + "sinks", Shape{c.heads});
    all.emplace_back(layer + "post_attention_layernorm.weight", Shape{c.dim});
    linear(layer + "mlp.router", c.dim, c.experts, true);
    experts(layer + "mlp.experts.gate_up_proj", c.dim, 2 * c.inner);
    experts(layer + "mlp.experts.down_proj", c.inner, c.dim);
  }
  all.emplace_back("model.norm.weight", Shape{c.dim});
  linear("lm_head", c.dim, c.vocabulary, false);
  return all;
}

}  // namespace parity
