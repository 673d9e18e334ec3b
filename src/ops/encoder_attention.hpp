// Attention as encoders have it: every query over every key, the scores scaled as the model says and a bias added that
// holds what it knows of positions and of padding.
#pragma once
#include <ATen/ATen.h>

#include "ops/op.hpp"

namespace parity {

struct ScoreForm {
  double scale = 1;      // UMT5: 1; CLIP: 1/sqrt(d)
  at::Tensor bias = {};  // (batch or 1, heads or 1, tokens, keys), finite, of the queries' dtype; or undefined
};

namespace ops {

/// q (batch, heads, tokens, d), k and v (batch, heads, keys, d) of one dtype and any strides -> (batch, heads, tokens,
/// d): softmax(scale q k^T + bias) v. LibTorch's fused kernel, called as transformers calls it (sdpa_attention.py).
at::Tensor encoder_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const ScoreForm& form);

/// Throws Error for shapes that do not belong together.
void check_encoder_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const ScoreForm& form);

}  // namespace ops

const OpRow& encoder_attention_row();       // scale 1/sqrt(d)
const OpRow& encoder_attention_bias_row();  // no scale, a bias a head, and padded keys in one sample

}  // namespace parity
