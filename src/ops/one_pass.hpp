// Ops that stand side by side in a transformer's block, computed in one pass over the rows by our own kernels
// (kernels/cpu/row_passes.hpp). Nobody sees what is between them: for runs without a probe.
#pragma once
#include <ATen/ATen.h>

#include "ops/activation.hpp"
#include "ops/op.hpp"
#include "ops/rope_table.hpp"

namespace parity {
namespace ops {

/// LayerNorm, times gain (a modulation's is 1 + scale), plus shift, in fp32 or wider, rounded once to x's dtype. x
/// (batch, tokens, dim); gain and shift (batch or 1, 1, dim). Throws Error where they do not fit.
at::Tensor norm_modulate(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& shift, double eps);

/// x + y * gate in fp32 or wider, rounded once to x's dtype. x and y (batch, tokens, dim) of one dtype, gate (batch or
/// 1, 1, dim). Written over `y` when the caller moved the only reference in. Throws Error where they do not fit.
at::Tensor gate_residual(const at::Tensor& x, at::Tensor y, const at::Tensor& gate);

/// RMS norm over `x` (batch, tokens, dim), rounded to x's dtype (RmsForm::round_once), then RopeForm::real's turn of
/// each head, rounded again; heads as the table is wide. Without a table in `turn`: the norm alone. Written over `x`
/// when the caller moved the only reference in. Throws Error where they do not fit.
at::Tensor norm_turn(at::Tensor x, const at::Tensor& weight, double eps, const RopeTurn& turn);

/// As `gelu`'s tanh form.
at::Tensor own_gelu_tanh(at::Tensor x);

/// transformers' NewGELUActivation in one pass, each of its eight steps rounded to x's dtype (fp64, fp32, bf16).
/// Written over `x` when the caller moved the only reference in.
at::Tensor own_gelu_new(at::Tensor x);

}  // namespace ops

const OpRow& norm_modulate_row();
const OpRow& gate_residual_row();
const OpRow& norm_turn_row();

}  // namespace parity
