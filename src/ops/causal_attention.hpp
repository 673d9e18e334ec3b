// Causal attention as language models have it: queries of the last tokens over all keys so far, fewer heads of keys
// than of queries (GQA), a window, and sinks.
#pragma once
#include <ATen/ATen.h>

#include "ops/op.hpp"

namespace parity {

struct CausalForm {
  int64_t window = 0;  // > 0: a query sees this many tokens at most, itself included
  at::Tensor sinks{};  // (heads): a logit more in each softmax, without a value; or undefined
};

namespace ops {

/// q (batch, heads, tokens, d), k and v (batch, key heads, keys, d) of one dtype and any strides -> (batch, heads,
/// tokens, d). Query i stands at position keys - tokens + i; query head h looks at key head h / (heads / key heads).
/// Scale 1/sqrt(d). Without window, sinks or GQA this is LibTorch's fused kernel, called as transformers calls it;
/// sinks take the steps of transformers' gpt-oss, each rounded to the dtype.
at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const CausalForm& form);

/// Throws Error for shapes that do not belong together.
void check_causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const CausalForm& form);

}  // namespace ops

const OpRow& causal_attention_row();
const OpRow& causal_attention_window_row();
const OpRow& causal_attention_sinks_row();

}  // namespace parity
