// The convolution of video autoencoders: over space on both sides, over time on frames already seen alone.
#pragma once
#include <ATen/ATen.h>

#include "ops/op.hpp"

namespace parity {
namespace ops {

/// x (batch, in, frames, height, width), weight (out, in, kt, kh, kw), bias (out), `before` (batch, in, n, height,
/// width) the frames before `x` or undefined, one dtype -> (batch, out, frames', height, width). Space is padded with
/// (k - 1) / 2 zeros on each side. Over time, stride 1: frames that are not there before the first count as zeros,
/// frames' = frames. Stride over 1: nothing is padded, frames' = (n + frames - kt) / stride + 1.
/// As diffusers' WanCausalConv3d (autoencoder_kl_wan.py): joined, padded in a step of its own, convolved.
at::Tensor causal_conv3d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                         const at::Tensor& before, int64_t time_stride);

/// The same, the picture's zeros left to LibTorch's convolution: no copy of x where there are enough frames before it.
at::Tensor causal_conv3d_at_once(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                 const at::Tensor& before, int64_t time_stride);

/// The same by our own kernel.
at::Tensor own_causal_conv3d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                             const at::Tensor& before, int64_t time_stride);

}  // namespace ops

const OpRow& causal_conv3d_row();
const OpRow& causal_conv3d_after_row();
const OpRow& causal_conv3d_halving_row();

}  // namespace parity
