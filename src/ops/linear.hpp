// x W^T + b.
#pragma once
#include <ATen/ATen.h>

#include "ops/op.hpp"

namespace parity {
namespace ops {

/// x (..., in), weight (out, in), bias (out) of one dtype -> (..., out) in that dtype, sums in fp32 or wider, one
/// rounding. As in PyTorch, a non-contiguous 3-D `x` gets its bias in a second step: in bf16 the product is rounded
/// before the bias is added.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// The same by our own kernel.
at::Tensor own_linear_nd(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace ops

const OpRow& linear_row();
const OpRow& linear_apart_row();

}  // namespace parity
