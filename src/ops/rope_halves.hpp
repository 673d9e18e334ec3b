// Rotary position embedding over the two halves of a head, as gpt-oss has it: every product and sum rounds.
#pragma once
#include <ATen/ATen.h>

#include "ops/op.hpp"

namespace parity {
namespace ops {

/// x (..., d), cos and sin (..., d / 2) to be broadcast, of one dtype -> x's shape: (a, b) -> (a cos - b sin, b cos +
/// a sin) over the halves a and b, each step in that dtype (transformers, modeling_gpt_oss.py, _apply_rotary_emb).
at::Tensor rope_halves(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

}  // namespace ops

const OpRow& rope_halves_row();

}  // namespace parity
