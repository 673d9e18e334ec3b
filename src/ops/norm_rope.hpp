// RMS norm and the rotation of a row's two halves, as Llama, Qwen and gpt-oss have them.
#pragma once
#include <ATen/ATen.h>

#include "ops/op.hpp"

namespace parity {
namespace ops {

/// x (rows, dim), weight (dim), cos and sin (rows, dim / 2), of one dtype -> (rows, dim). Computed in fp32 or wider,
/// rounded once: y = x / rms * weight, then (a, b) -> (a cos - b sin, b cos + a sin) over the halves a and b.
at::Tensor norm_rope(const at::Tensor& x, const at::Tensor& weight, double eps, const at::Tensor& cos,
                     const at::Tensor& sin);

}  // namespace ops

const OpRow& norm_rope_row();

}  // namespace parity
