// Our own kernels (kernels/cpu) as ops on tensors: threads over outputs, heads or rows. Each stands in the op table as
// the variant "own" of the op that it computes.
#pragma once
#include <ATen/ATen.h>

#include "kernels/cpu/gemv.hpp"
#include "ops/causal_attention.hpp"
#include "ops/encoder_attention.hpp"

namespace parity {

/// A linear layer's weight in signed bytes, one scale an output: weight = values * scale, at most half a step off.
struct Int8Weight {
  at::Tensor values;  // (out, in) int8
  at::Tensor scale;   // (out) fp32: the step
};

namespace ops {

using kernels::Activation;

/// x (rows, in), weight (out, in), bias (out) or undefined, of one dtype: fp64, fp32 or bf16 -> (rows, out). Sums in
/// fp32 or wider, one rounding, then the activation.
at::Tensor own_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      Activation activation = Activation::none);

/// x and bias fp32.
at::Tensor own_linear(const at::Tensor& x, const Int8Weight& weight, const at::Tensor& bias,
                      Activation activation = Activation::none);

/// Symmetric, per output: the largest magnitude of a row becomes 127. weight: (out, in), any float. `values`: where the
/// bytes go, of weight's shape; undefined: a new tensor.
Int8Weight quantise_rows(const at::Tensor& weight, const at::Tensor& values = {});

/// As `causal_attention`, in one pass over the keys; nothing is rounded but the result.
at::Tensor own_causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const CausalForm& form);

/// As `encoder_attention`, in tiles of 256 queries over blocks of keys: memory grows with neither. Nothing is rounded
/// but the result.
at::Tensor own_encoder_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const ScoreForm& form);

/// x (batch, in, frames, height, width), padded already, weight (out, in, kt, kh, kw), bias (out) or undefined, stride
/// over frames, height and width -> (batch, out, …), the voxels under each output as a row of one linear layer: kt kh
/// kw times the memory of x. An image and its weight have no frames.
at::Tensor own_conv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::IntArrayRef stride);

/// x (rows, dim); weight (dim) or undefined: no norm; cos and sin (rows, dim / 2) or undefined: no rotation.
at::Tensor own_norm_rope(const at::Tensor& x, const at::Tensor& weight, double eps, const at::Tensor& cos,
                         const at::Tensor& sin);

}  // namespace ops
}  // namespace parity
