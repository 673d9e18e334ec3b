// RMS norm over the channels of a picture or video, without eps under the root: diffusers' WanRMS_norm.
#pragma once
#include <ATen/ATen.h>

#include "ops/op.hpp"

namespace parity {
namespace ops {

/// x (batch, channels, …), gamma (channels, 1, …) -> x / max(||x||, 1e-12) * sqrt(channels) * gamma, the norm over
/// axis 1. Half width (autoencoder_kl_wan.py, WanRMS_norm.forward): divided in fp32, then one rounding after the
/// division, one after the scale, one after gamma. The absent bias is an addition of 0 there, which makes -0 to 0.
at::Tensor channel_norm(const at::Tensor& x, const at::Tensor& gamma);

}  // namespace ops

const OpRow& channel_norm_row();

}  // namespace parity
