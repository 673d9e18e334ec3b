// The text encoder as Wan's original repository publishes it: models_t5_umt5-xxl-enc-bf16.pth, a state dict.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "models/checkpoint.hpp"

namespace parity {

/// "encoder.block.3.layer.1.DenseReluDense.wi_0.weight" -> "blocks.3.ffn.gate.0.weight" (wan/modules/t5.py). A name
/// that is no parameter's stays as it is.
std::string umt5_original_name(const std::string& transformers);

/// Keys of transformers' UMT5Config, the sizes from the tensors' shapes. What shapes do not tell (the distance of the
/// last bucket, eps) is what the original code has, or `settings`. Throws Error naming the tensor that is missing.
nlohmann::json umt5_original_config(const Checkpoint& stored, const nlohmann::json& settings);

}  // namespace parity
