// The autoencoder as Wan's original repository publishes it: Wan2.1_VAE.pth, a state dict (names:
// models/wan_vae/names.hpp).
#pragma once
#include <nlohmann/json.hpp>

#include "models/checkpoint.hpp"

namespace parity {

/// Keys of diffusers' AutoencoderKLWan, the sizes from the tensors' shapes. The statistics of the latents are those of
/// the original code for 16 channels (wan/modules/vae.py), or `settings`. Throws Error: a tensor that is missing, or
/// another number of channels without statistics.
nlohmann::json wan_vae_original_config(const Checkpoint& stored, const nlohmann::json& settings);

}  // namespace parity
