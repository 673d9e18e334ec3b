// RMS norm over the whole last dimension (all heads together), with the three places where real code rounds.
#pragma once
#include <ATen/ATen.h>

#include "core/precision.hpp"
#include "ops/op.hpp"

namespace parity {

enum class RmsForm {
  wide,         // SkyReels-V2 `fast_rms_norm`: fp32, times the weight, stays fp32 (its type_as follows an upcast)
  round_first,  // Wan2.1 `WanRMSNorm`: fp32, rounded to the input's dtype, then times the weight
  round_once,   // torch.nn.RMSNorm (PyTorch >= 2.8; earlier ones rounded first): fp32, times the weight, rounded to the
                // input's dtype
  round_last,   // transformers' GptOssRMSNorm: the same written out in ops, eps as given
  t5,  // transformers' UMT5LayerNorm: fp32, rounded to the weight's dtype where that is half as wide, then times
       // the weight
};

namespace ops {

/// x (..., dim), weight (dim) -> (..., dim). The result is fp32 or wider (wide), the promotion of input and weight
/// (round_first), the input's dtype (round_once, round_last), the weight's (t5). round_once adds eps as PyTorch's fused
/// op does: rounded to fp32 also under fp64 (9.99999997e-07 for 1e-6).
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps, RmsForm form, Precision precision);

}  // namespace ops

const OpRow& rms_norm_wide_row();
const OpRow& rms_norm_round_first_row();
const OpRow& rms_norm_round_once_row();
const OpRow& rms_norm_round_last_row();
const OpRow& rms_norm_t5_row();

}  // namespace parity
