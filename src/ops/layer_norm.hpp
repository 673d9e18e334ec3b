// LayerNorm over the last dimension, with the two choices that separate the cast placements: in which dtype the kernel
// runs, and in which the result leaves.
#pragma once
#include <ATen/ATen.h>

#include "ops/op.hpp"

namespace parity {
namespace ops {

/// x (..., dim), weight and bias (dim) or undefined -> (..., dim).
///   compute: x, weight and bias are cast to it. bfloat16 is the bf16 kernel: statistics in fp32, one rounding of the
///   result. out:     the result's dtype; `x.scalar_type()` is the `.type_as(x)` of Wan2.1 and diffusers'
///   FP32LayerNorm.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps,
                      at::ScalarType compute, at::ScalarType out);

}  // namespace ops

const OpRow& layer_norm_row();           // kernel in the storage dtype
const OpRow& layer_norm_wide_row();      // computed and left in fp32 or wider
const OpRow& layer_norm_as_input_row();  // computed in fp32 or wider, rounded to the input's dtype

}  // namespace parity
