// Weights in MXFP4, gpt-oss's published form: blocks of 32 values of four bits (e2m1) with a power of two each (OCP
// Microscaling Formats 1.0).
#pragma once
#include <ATen/ATen.h>

#include "ops/op.hpp"

namespace parity {

inline constexpr int64_t kMxfp4Block = 32;

struct Mxfp4Weight {
  at::Tensor values;  // (out, in / 2) uint8: two values a byte, the low four bits first
  at::Tensor scales;  // (out, in / 32) uint8: exponent + 127
};

namespace ops {

/// A block's largest magnitude decides its exponent, so that it falls into [4, 8); the rest goes to the nearest of
/// 0, .5, 1, 1.5, 2, 3, 4, 6. weight: (out, in), any float. Throws Error when `in` is not a multiple of 32.
Mxfp4Weight quantise_mxfp4(const at::Tensor& weight);

/// (out, in) in `dtype`: exact in bf16 and wider, but for exponents beyond the dtype's.
at::Tensor dequantise(const Mxfp4Weight& weight, at::ScalarType dtype);

/// x (rows, in), bias (out) or undefined, fp64, fp32 or bf16 -> (rows, out): our own kernel, reading four bits a
/// weight; sums in fp32 or wider, one rounding. Throws Error for shapes that do not fit.
at::Tensor own_linear(const at::Tensor& x, const Mxfp4Weight& weight, const at::Tensor& bias);

}  // namespace ops

const OpRow& linear_mxfp4_row();

}  // namespace parity
