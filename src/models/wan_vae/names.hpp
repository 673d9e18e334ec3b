// Parameter names of the original repository's autoencoder (Wan2.1_VAE.pth), beside diffusers'.
#pragma once
#include <string>

#include "models/wan_vae/config.hpp"

namespace parity {

/// "decoder.up_blocks.1.resnets.0.conv1.weight" -> "decoder.upsamples.4.residual.2.weight": the originals number all
/// layers of a half, whatever they do. For a WeightSource over original weights (`StoredName`); a name that is none of
/// the configuration's parameters stays as it is.
std::string wan_vae_original_name(const WanVaeConfig& config, const std::string& diffusers);

}  // namespace parity
