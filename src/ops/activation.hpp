// GELU in its forms, and SiLU.
#pragma once
#include <ATen/ATen.h>

#include "ops/op.hpp"

namespace parity {

enum class GeluForm { tanh, erf };

namespace ops {

/// Any shape, any float; computed in fp32 or wider, one rounding. Written in place when the caller moved the only
/// reference in.
at::Tensor gelu(at::Tensor x, GeluForm form);

/// x * sigmoid(1.702 x) in transformers' three ops (QuickGELUActivation), each of which rounds.
at::Tensor quick_gelu(const at::Tensor& x);

/// x * sigmoid(x), as `gelu`.
at::Tensor silu(const at::Tensor& x);

}  // namespace ops

const OpRow& gelu_tanh_row();
const OpRow& gelu_erf_row();
const OpRow& quick_gelu_row();
const OpRow& silu_row();

}  // namespace parity
