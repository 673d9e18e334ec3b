// The sizes of a gpt-oss, read from transformers' config.json or a recording's provenance.
#pragma once
#include <nlohmann/json.hpp>
#include <vector>

#include "models/gpt_oss/yarn.hpp"
#include "models/parameters.hpp"

namespace parity {

struct GptOssConfig {
  int64_t vocabulary = 0, dim = 0, inner = 0, layers = 0;
  int64_t heads = 0, key_heads = 0, head_dim = 0;
  int64_t experts = 0, experts_per_token = 0;
  int64_t window = 0;         // tokens that a sliding layer sees, a token itself included
  std::vector<bool> sliding;  // by layer
  double eps = 1e-5;          // of the norms
  double swiglu_alpha = 1.702, swiglu_limit = 7;
  bool attention_bias = true;
  Yarn yarn;

  /// Of layer `i`: its window, 0 when it sees everything.
  int64_t window_of(int64_t i) const { return sliding[static_cast<size_t>(i)] ? window : 0; }
};

/// Keys of transformers' GptOssConfig, also as the published checkpoints write them (rope_scaling and rope_theta for
/// rope_parameters). Throws Error naming the key when one is missing, of the wrong type, impossible, or asks for what
/// is not written here (another RoPE, tied embeddings).
GptOssConfig gpt_oss_config(const nlohmann::json& config);

/// How the experts' weights are stored.
enum class ExpertStorage { plain, mxfp4 };

/// Every parameter's name and shape. Experts: (experts, in, out), or under mxfp4 as published: `_blocks` (experts, out,
/// in / 32, 16) and `_scales` (experts, out, in / 32), bytes.
Parameters gpt_oss_parameters(const GptOssConfig& config, ExpertStorage storage = ExpertStorage::plain);

}  // namespace parity
