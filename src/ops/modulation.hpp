// AdaLN modulation: six vectors from a learned table and the time embedding, and the two multiply-adds that apply them.
// Names as in SkyReels-V2's transformer.py: mul_add, mul_add_add.
#pragma once
#include <ATen/ATen.h>

#include <vector>

#include "core/precision.hpp"
#include "ops/op.hpp"

namespace parity::ops {

/// table (1, n, dim) + e, fp32 or wider. e: (batch, n, dim); with a time step per token (batch, n, tokens, dim), `axis`
/// 1, or (batch, tokens, n, dim), `axis` 2. The result has e's shape.
at::Tensor modulation(const at::Tensor& table, const at::Tensor& e, int64_t axis = 1);

/// The n parts of a modulation along `axis`: (batch, 1, dim) each, or (batch, tokens, dim).
std::vector<at::Tensor> parts_of(const at::Tensor& modulation, int64_t axis = 1);

/// x.float() + y.float() * gate, in that order of roundings; the result is fp32 or wider. `y` is consumed.
at::Tensor mul_add(const at::Tensor& x, at::Tensor y, const at::Tensor& gate, Precision precision);

/// x.float() * (1 + scale) + shift, in that order of roundings; the result is fp32 or wider. `x` is consumed.
at::Tensor mul_add_add(at::Tensor x, const at::Tensor& scale, const at::Tensor& shift, Precision precision);

/// x + y in the promotion of both dtypes: the residual add. `x` is consumed.
at::Tensor add(at::Tensor x, const at::Tensor& y);

}  // namespace parity::ops

namespace parity {

const OpRow& modulation_row();
const OpRow& mul_add_row();
const OpRow& mul_add_add_row();
const OpRow& add_row();

}  // namespace parity
