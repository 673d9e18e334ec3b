// A layer's experts: tokens sorted by expert and one product each, or expert after expert as transformers writes it.
#pragma once
#include <ATen/ATen.h>

#include "models/gpt_oss/config.hpp"
#include "models/gpt_oss/ops.hpp"
#include "models/probe.hpp"
#include "ops/mxfp4.hpp"

namespace parity {

/// A matrix an expert, plain or in MXFP4.
struct ExpertMatrices {
  at::Tensor plain;      // (experts, in, out), or (experts, out, in) under outputs_first
  Mxfp4Weight packed{};  // (experts, out, in / 2) and (experts, out, in / 32)
};

struct ExpertWeights {
  ExpertMatrices gate_up;   // dim -> 2 inner: gates at even places, ups at odd ones
  at::Tensor gate_up_bias;  // (experts, 2 inner)
  ExpertMatrices down;      // inner -> dim
  at::Tensor down_bias;     // (experts, dim)
};

struct Routing {
  at::Tensor weights, chosen;  // (rows, k), chosen: int64
};

/// gate_up (rows, 2 inner) -> (rows, inner): gates below the limit, ups within it, (up + 1) gate sigmoid(alpha gate).
at::Tensor clamped_swiglu(const GptOssConfig& config, const at::Tensor& gate_up, Probe& probe);

/// x (rows, dim) -> (rows, dim). transformers' default, integrations/moe.py, grouped_mm_experts_forward: every step
/// rounds, the sum over a token's experts does once.
at::Tensor grouped_experts(const GptOssConfig& config, const GptOssOps& ops, const ExpertWeights& weights,
                           const at::Tensor& x, const Routing& routing, Probe& probe);

/// The same, modeling_gpt_oss.py, GptOssExperts.forward: one expert after the other, each adding to the result, which
/// rounds every time.
at::Tensor looped_experts(const GptOssConfig& config, const GptOssOps& ops, const ExpertWeights& weights,
                          const at::Tensor& x, const Routing& routing);

}  // namespace parity
