// Wan2.1's video autoencoder as diffusers' AutoencoderKLWan computes it: a clip in chunks on a cache of features, or at
// once. Every op of the recording is a probe point.
#pragma once
#include <ATen/ATen.h>

#include <string_view>

#include "models/probe.hpp"
#include "models/wan_vae/ops.hpp"
#include "models/wan_vae/weights.hpp"

namespace parity {

/// How a clip goes through: the first frame and then groups, each on what the convolutions kept of those before
/// (diffusers), or all frames at once.
enum class VaeWay { chunks, whole };

class WanVaeModel {
 public:
  /// `weights`: by diffusers' names ("decoder.conv_in.weight").
  WanVaeModel(const WanVaeConfig& config, Precision precision, const WeightSource& weights, WanVaeOps ops = {});

  /// z (batch, latent_channels, frames, height, width) -> (batch, out_channels, …) in [-1, 1]; a first latent frame is
  /// one frame, every further one as many as time is halved.
  at::Tensor decode(const at::Tensor& z, VaeWay way, Probe& probe) const;
  /// x (batch, in_channels, frames, height, width) -> (batch, 2 latent_channels, …): mean and logarithm of the
  /// variance. In chunks of four after the first; what is left over is not encoded, as in diffusers.
  at::Tensor encode(const at::Tensor& x, VaeWay way, Probe& probe) const;

  /// As the pipelines do around decode and encode: the transformer's latents to the model's, and the mean of the
  /// encoded to the transformer's.
  at::Tensor from_transformer(const at::Tensor& latents, Probe& probe) const;
  at::Tensor to_transformer(const at::Tensor& encoded, Probe& probe) const;

  const WanVaeConfig& config() const { return config_; }
  at::ScalarType dtype() const { return weights_.post_quant_conv.weight.scalar_type(); }  // of the stream

 private:
  at::Tensor half(const VaeHalf& half, const VaeHalfWeights& w, at::Tensor x, FeatureCache* cache, Probe& probe) const;
  at::Tensor causal(std::string_view name, const at::Tensor& x, const Affine& w, FeatureCache* cache,
                    Probe& probe) const;
  // layers.cpp
  at::Tensor layer(VaeStage stage, const VaeLayerWeights& w, const at::Tensor& x, FeatureCache* cache,
                   Probe& probe) const;
  at::Tensor residual(const VaeResidualWeights& w, const at::Tensor& x, FeatureCache* cache, Probe& probe) const;
  at::Tensor attention(const VaeAttentionWeights& w, const at::Tensor& x, Probe& probe) const;
  at::Tensor larger(const VaeResampleWeights& w, const at::Tensor& x, Probe& probe) const;
  at::Tensor smaller(const VaeResampleWeights& w, const at::Tensor& x, Probe& probe) const;
  at::Tensor twice_the_frames(const VaeResampleWeights& w, const at::Tensor& x, FeatureCache* cache,
                              Probe& probe) const;
  at::Tensor half_the_frames(const VaeResampleWeights& w, const at::Tensor& x, FeatureCache* cache, Probe& probe) const;

  WanVaeConfig config_;
  VaeHalf encoder_, decoder_;
  WanVaeOps ops_;
  WanVaeWeights weights_;
};

}  // namespace parity
