// The sizes of a UMT5 text encoder, read from transformers' config.json or a recording's provenance.
#pragma once
#include <nlohmann/json.hpp>

#include "models/parameters.hpp"
#include "ops/relative_position.hpp"

namespace parity {

struct Umt5Config {
  int64_t vocabulary = 0, dim = 0, layers = 0, heads = 0, head_dim = 0, inner = 0, padding = 0;
  BucketForm buckets;
  double eps = 1e-6;

  int64_t heads_dim() const { return heads * head_dim; }  // need not be `dim`
};

/// Keys of transformers' UMT5Config. Throws Error naming the key when one is missing, of the wrong type, impossible, or
/// asks for what is not written here (a decoder, a feed-forward layer that is not gated by gelu_new).
Umt5Config umt5_config(const nlohmann::json& config);

/// Every parameter's name and shape, by transformers' names; linear weights are (out, in), and none has a bias.
Parameters umt5_parameters(const Umt5Config& config);

}  // namespace parity
