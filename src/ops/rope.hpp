// Rotary position embedding: the pairs (x[2i], x[2i+1]) of every head turned by the token's angles.
#pragma once
#include <ATen/ATen.h>

#include "core/precision.hpp"
#include "ops/op.hpp"
#include "ops/rope_table.hpp"

namespace parity {
namespace ops {

/// x (batch, tokens, heads, d) -> the same shape.
///   complex64, complex128: multiplied in that dtype, the result is fp32 (fp64 under Precision::fp64)
///   real: products and sums in the promotion of x and the table (bf16 x and fp32 table: fp32), rounded to x's dtype
at::Tensor rope(const at::Tensor& x, const RopeTurn& turn, Precision precision);

}  // namespace ops

const OpRow& rope_complex64_row();
const OpRow& rope_complex128_row();
const OpRow& rope_real_row();

}  // namespace parity
