// The convolution that cuts a latent video or an image into patches: kernel and stride are the patch, so every voxel is
// used once.
#pragma once
#include <ATen/ATen.h>

#include "ops/op.hpp"

namespace parity {
namespace ops {

/// x (batch, channels, frames, height, width), weight (dim, channels, pt, ph, pw), bias (dim), one dtype
/// -> (batch, dim, frames / pt, height / ph, width / pw). An image has no frames, its weight is (dim, channels, ph,
/// pw); a bias may be undefined.
at::Tensor patch_embedding(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// The same by our own kernel.
at::Tensor own_patch_embedding(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// (batch, dim, f, h, w) -> (batch, f * h * w, dim), contiguous.
at::Tensor tokens_of(const at::Tensor& patches);

}  // namespace ops

const OpRow& patch_embedding_row();
const OpRow& patch_embedding_image_row();

}  // namespace parity
