#include "models/gpt2/config.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "models/config_keys.hpp"

namespace parity {
namespace {

constexpr ConfigKeys kGpt2Keys{"gpt2", "a GPT-2's"};

// What a configuration may ask for and this model does not have.
void refuse(const nlohmann::json& config) {
  const auto activation = kGpt2Keys.take<std::string>(config, "activation_function", "gelu_new");
  if (activation != "gelu_new")
    throw Error(fmt::format("[gpt2] activation_function '{}' is not written here, only 'gelu_new'", activation));
  if (!kGpt2Keys.take<bool>(config, "scale_attn_weights", true))
    throw Error("[gpt2] scale_attn_weights false is not written here");
  for (const auto* key : {"scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "add_cross_attention"})
    if (kGpt2Keys.take<bool>(config, key, false)) throw Error(fmt::format("[gpt2] {} is not written here", key));
  if (!kGpt2Keys.take<bool>(config, "tie_word_embeddings", true))
    throw Error("[gpt2] tie_word_embeddings false is not written here");
}

}  // namespace

Gpt2Config gpt2_config(const nlohmann::json& config) {
  if (!config.is_object())
    throw Error("[gpt2] the recording has no model configuration: record it with the model's config");
  const auto count = [&](const char* key) {
    const auto n = kGpt2Keys.take<int64_t>(config, key);
    if (n <= 0 || n > (int64_t{1} << 32)) throw Error(fmt::format("[gpt2] impossible configuration: {} {}", key, n));
    return n;
  };
  refuse(config);
  Gpt2Config c;
  c.vocabulary = count("vocab_size"), c.positions = count("n_positions"), c.dim = count("n_embd");
  c.layers = count("n_layer"), c.heads = count("n_head");
  c.inner = kGpt2Keys.take<int64_t>(config, "n_inner", 4 * c.dim);
  c.eps = kGpt2Keys.take<double>(config, "layer_norm_epsilon", 1e-5);
  if (c.dim % c.heads != 0)
    throw Error(
        fmt::format("[gpt2] impossible configuration: n_embd {} is not a multiple of n_head {}", c.dim, c.heads));
  if (c.inner <= 0) throw Error(fmt::format("[gpt2] impossible configuration: n_inner {}", c.inner));
  return c;
}

Parameters gpt2_parameters(const Gpt2Config& c) {
  using Shape = std::vector<int64_t>;
  Parameters all{{"transformer.wte.weight", Shape{c.vocabulary, c.dim}},
                 {"transformer.wpe.weight", Shape{c.positions, c.dim}}};
  const auto pair = [&](const std::string& name, Shape weight) {
    const auto out = weight.back();
    all.emplace_back(name + ".weight", std::move(weight));
    all.emplace_back(name + ".bias", Shape{out});
  };
  for (int64_t i = 0; i < c.layers; ++i) {
    const auto block = fmt::format("transformer.h.{}.", i);
    pair(block + "ln_1", {c.dim}), pair(block + "attn.c_attn", {c.dim, 3 * c.dim});
    pair(block + "attn.c_proj", {c.dim, c.dim}), pair(block + "ln_2", {c.dim});
    pair(block + "mlp.c_fc", {c.dim, c.inner}), pair(block + "mlp.c_proj", {c.inner, c.dim});
  }
  pair("transformer.ln_f", {c.dim});
  return all;
}

}  // namespace parity
