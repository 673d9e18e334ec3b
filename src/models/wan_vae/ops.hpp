// The ops the autoencoder is made of, each replaceable: a test puts a fault in with one line.
#pragma once
#include <ATen/ATen.h>

#include <functional>

#include "models/model.hpp"
#include "models/wan_vae/config.hpp"
#include "models/wan_vae/feature_cache.hpp"
#include "ops/activation.hpp"
#include "ops/attention.hpp"
#include "ops/causal_conv3d.hpp"
#include "ops/channel_norm.hpp"
#include "ops/resample.hpp"

namespace parity {

/// The latents' statistics, which stand in the configuration and not in the model: (1, latent_channels, 1, 1, 1).
struct LatentScale {
  at::Tensor mean, reciprocal_std;
};

/// As the Wan pipelines make them: fp32, then `dtype`, then the reciprocal.
LatentScale latent_scale(const WanVaeConfig& config, at::ScalarType dtype);

struct WanVaeOps {
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& before, int64_t time_stride)>
      causal_conv = ops::causal_conv3d;
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                           int64_t padding)>
      conv = ops::conv2d;
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& gamma)> norm = ops::channel_norm;
  std::function<at::Tensor(const at::Tensor& x)> silu = ops::silu;
  std::function<at::Tensor(const at::Tensor& x)> double_pixels = ops::double_pixels;
  std::function<at::Tensor(const at::Tensor& x)> pad = ops::pad_below_right;
  std::function<at::Tensor(const at::Tensor& x)> interleave = ops::interleave_frames;
  /// q, k, v (batch * frames, pixels, 1, channels): each frame on its own.
  std::function<at::Tensor(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v)> attention =
      [](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) { return ops::attention(q, k, v, {}); };
  /// What a convolution keeps for the next chunk.
  std::function<at::Tensor(const at::Tensor& before, const at::Tensor& x, int64_t count)> keep = last_frames;
  /// What the doubling in time keeps of the clip's first frame, which it lets pass alone: nothing. The frames after it
  /// are convolved as if they were the first (diffusers' "Rep", autoencoder_kl_wan.py, WanResample.forward).
  std::function<at::Tensor(const at::Tensor& first)> keep_first = [](const at::Tensor&) { return at::Tensor(); };
  std::function<LatentScale(const WanVaeConfig&, at::ScalarType)> scale = latent_scale;
};

/// LibTorch's kernels, or our own for convolutions and attention.
WanVaeOps wan_vae_ops(Kernels kernels);

/// The fastest for real pictures: LibTorch's convolutions without copies that only pad, our own attention.
WanVaeOps fast_wan_vae_ops();

}  // namespace parity
