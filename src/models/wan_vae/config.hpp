// The sizes of Wan2.1's video autoencoder and the layers that they make, read from diffusers' config.json or a
// recording's provenance.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/parameters.hpp"

namespace parity {

struct WanVaeConfig {
  int64_t encoder_dim = 96, decoder_dim = 96;  // channels at full size
  int64_t latent_channels = 16, in_channels = 3, out_channels = 3;
  int64_t residual_blocks = 2;                       // a level of the encoder; the decoder has one more
  std::vector<int64_t> widths{1, 2, 4, 4};           // of the levels, in units of the channels at full size
  std::vector<bool> halves_time{false, true, true};  // does the encoder halve time too, where it halves the picture?
  std::vector<double> latents_mean, latents_std;     // (latent_channels)
};

/// Keys of diffusers' AutoencoderKLWan (base_dim, dim_mult, …). Throws Error naming the key when one is missing, of the
/// wrong type, impossible, or asks for what is not written here (Wan2.2's residual blocks and patches).
WanVaeConfig wan_vae_config(const nlohmann::json& config);

enum class VaeStage { residual, attention, upsample, upsample_time, downsample, downsample_time };

struct VaeLayer {
  std::string path;  // "decoder.up_blocks.0.resnets.1", as diffusers names it
  VaeStage stage;
  int64_t in, out;  // channels
};

/// Encoder or decoder: a convolution, these layers, norm, SiLU, a convolution.
struct VaeHalf {
  std::string path;              // "decoder"
  int64_t in, first, last, out;  // channels: of the input, behind conv_in, before conv_out, of the output
  std::vector<VaeLayer> layers;
};

VaeHalf wan_vae_encoder(const WanVaeConfig& config);
VaeHalf wan_vae_decoder(const WanVaeConfig& config);

/// Every parameter's name (diffusers') and shape.
Parameters wan_vae_parameters(const WanVaeConfig& config);

}  // namespace parity
