// The image encoder as Wan's original repository publishes it: models_clip_open-clip-xlm-roberta-large-vit-huge-14.pth,
// a state dict with a text tower that Wan does not use.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "models/checkpoint.hpp"

namespace parity {

/// Gives q, k and v of each layer, and the embeddings, the shapes that transformers' have: "….attn.to_qkv.weight[0]".
void take_clip_original_apart(Checkpoint& stored);

/// "encoder.layers.0.self_attn.k_proj.weight" -> "visual.transformer.0.attn.to_qkv.weight[1]" (wan/modules/clip.py), of
/// a checkpoint that was taken apart.
std::string clip_original_name(const std::string& transformers);

/// Is this what a published file holds beside: the text tower, the projection to the common space, the temperature?
bool clip_original_surplus(const std::string& stored_name);

/// Keys of transformers' CLIPVisionConfig, the sizes from the tensors' shapes. What shapes do not tell is what the
/// original code has (16 heads, GELU, eps 1e-5), or `settings`. Throws Error naming the tensor that is missing.
nlohmann::json clip_original_config(const Checkpoint& stored, const nlohmann::json& settings);

}  // namespace parity
