// A layer of GPT-2 for one token on a cache by our own kernels, with no tensor in between: for runs without a probe.
#pragma once
#include <ATen/ATen.h>

#include "ops/op.hpp"

namespace parity {

struct TokenLinear {
  at::Tensor weight;  // (out, in), of x's dtype, or signed bytes
  at::Tensor scale;   // (out) fp32, of signed bytes: weight * scale; else undefined
  at::Tensor bias;    // (out)
};

struct TokenNorm {
  at::Tensor gain, shift;  // (dim), fp32; fp64 where x is
};

struct TokenLayer {
  TokenNorm norm_1;
  TokenLinear attn_in, attn_out;  // dim -> 3 dim: queries, keys, values; dim -> dim
  TokenNorm norm_2;
  TokenLinear mlp_in, mlp_out;
  int64_t heads = 1;
  double eps = 1e-5;
};

/// Keys and values of the tokens before, and room for this one's.
struct TokenRows {
  at::Tensor keys, values;  // (batch, heads, positions, dim / heads), contiguous, of x's dtype
  int64_t length = 0;       // rows seen, this token's included
  int64_t slot = 0;         // where this token's are written
};

namespace ops {

/// x + attention(norm(x)), then x + mlp(norm(x)), written over x (batch, dim), fp64, fp32 or bf16. Each product, norm,
/// sum and step of gelu_new rounds to x's dtype, as LibTorch's ops do one by one. Throws Error for what does not fit.
void token_layer(const at::Tensor& x, const TokenLayer& layer, const TokenRows& rows);

}  // namespace ops

const OpRow& token_layer_row();

}  // namespace parity
