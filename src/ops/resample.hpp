// What makes a picture or video larger or smaller: neighbours repeated, convolutions over space, frames interleaved.
#pragma once
#include <ATen/ATen.h>

#include "ops/op.hpp"

namespace parity {
namespace ops {

/// (batch, channels, height, width) -> (batch, channels, 2 height, 2 width), each pixel four times (nearest-exact; at
/// this factor "nearest" is the same). Half width goes by way of fp32, as in diffusers' WanUpsample; no value changes.
at::Tensor double_pixels(const at::Tensor& x);

/// x (batch, in, height, width), weight (out, in, k, k), bias (out): `padding` zeros on each side.
at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                  int64_t padding);

/// The same by our own kernel.
at::Tensor own_conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t stride,
                      int64_t padding);

/// A row and a column of zeros, below and at the right: what a convolution of three with stride 2 then halves.
at::Tensor pad_below_right(const at::Tensor& x);

/// (batch, 2 channels, frames, height, width) -> (batch, channels, 2 frames, height, width): of each frame's two halves
/// of channels the first comes first.
at::Tensor interleave_frames(const at::Tensor& x);

}  // namespace ops

const OpRow& double_pixels_row();
const OpRow& conv2d_row();
const OpRow& conv2d_halving_row();
const OpRow& interleave_frames_row();

}  // namespace parity
