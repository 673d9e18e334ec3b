// The sizes of a GPT-2, read from transformers' config.json or a recording's provenance.
#pragma once
#include <nlohmann/json.hpp>

#include "models/parameters.hpp"

namespace parity {

struct Gpt2Config {
  int64_t vocabulary = 0, positions = 0, dim = 0, layers = 0, heads = 0, inner = 0;
  double eps = 1e-5;

  int64_t head_dim() const { return dim / heads; }
};

/// Keys of transformers' GPT2Config. Throws Error naming the key when one is missing, of the wrong type, impossible, or
/// asks for what is not written here (another activation, scaled or upcast attention, cross-attention).
Gpt2Config gpt2_config(const nlohmann::json& config);

/// Every parameter's name and shape; Conv1D's weights are (in, out). The output layer's weight is that of `wte`.
Parameters gpt2_parameters(const Gpt2Config& config);

}  // namespace parity
