// The sizes of a CLIP image encoder (ViT), read from transformers' config.json or a recording's provenance.
#pragma once
#include <nlohmann/json.hpp>

#include "models/parameters.hpp"

namespace parity {

enum class ClipActivation { gelu, quick_gelu };  // erf (the Wan image encoder, ViT-H), or x sigmoid(1.702 x) (OpenAI's)

struct ClipConfig {
  int64_t dim = 0, inner = 0, layers = 0, heads = 0, channels = 3, image = 0, patch = 0;  // image and patch: pixels
  ClipActivation activation = ClipActivation::gelu;
  double eps = 1e-5;

  int64_t head_dim() const { return dim / heads; }
  int64_t tokens() const { return (image / patch) * (image / patch) + 1; }  // the class token first
};

/// Keys of transformers' CLIPVisionConfig. Throws Error naming the key when one is missing, of the wrong type,
/// impossible, or an activation that is not written here.
ClipConfig clip_config(const nlohmann::json& config);

/// Every parameter's name and shape, by transformers' names; linear weights are (out, in).
Parameters clip_parameters(const ClipConfig& config);

}  // namespace parity
