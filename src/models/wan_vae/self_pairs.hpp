// What the autoencoder computes in two ways: a clip in chunks on a cache or at once, its beginning with the rest or
// alone.
#pragma once
#include "models/model.hpp"
#include "models/wan_vae/model.hpp"

namespace parity {

/// The decoded z (batch, latent_channels, frames, height, width), as the chunks give it, beside
///   whole  all latent frames at once, without a cache
///   first  of the first latent frame alone: causal, so it cannot know what follows
std::vector<SelfPair> wan_vae_decode_pairs(const WanVaeModel& model, const at::Tensor& z);

/// The same of the encoded x (batch, in_channels, frames, height, width).
std::vector<SelfPair> wan_vae_encode_pairs(const WanVaeModel& model, const at::Tensor& x);

}  // namespace parity
