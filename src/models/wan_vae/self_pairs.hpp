// What the autoencoder computes in two ways: a clip in chunks on a cache or at once, its beginning alone, its samples
// one by one.
#pragma once
#include "models/model.hpp"
#include "models/wan_vae/model.hpp"

namespace parity {

/// Frames of the decoded z (batch, latent_channels, frames, height, width), each as the chunks give it, beside
///   whole/frame.3  all latent frames at once, without a cache
///   first/frame.0  the first latent frame decoded alone: causal, so it cannot know what follows
///   sample.1       each sample of the batch decoded alone (diffusers' slicing)
std::vector<SelfPair> wan_vae_decode_pairs(const WanVaeModel& model, const at::Tensor& z);

/// The same of the encoded x (batch, in_channels, frames, height, width): "whole/latent.1", "first/latent.0",
/// "sample.1".
std::vector<SelfPair> wan_vae_encode_pairs(const WanVaeModel& model, const at::Tensor& x);

}  // namespace parity
