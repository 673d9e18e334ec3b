// Scaled dot-product attention over all tokens or under a block-causal mask.
#pragma once
#include <ATen/ATen.h>

#include "ops/op.hpp"
#include "ops/rope_table.hpp"

namespace parity {
namespace ops {

/// q (batch, tokens, heads, d), k and v (batch, keys, heads, d) of one dtype, mask (1, 1, tokens, keys) bool or
/// undefined
/// -> (batch, heads, tokens, d), as LibTorch's kernel lays it out. Softmax in fp32 or wider, scale 1/sqrt(d).
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask);

/// The same by our own kernel.
at::Tensor own_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask);

/// (batch, heads, tokens, d) -> (batch, tokens, heads * d).
at::Tensor join_heads(const at::Tensor& x);

/// (1, 1, tokens, tokens), true where a token may look: its own block of frames and those before.
/// Throws Error when the frames are not a multiple of the block.
at::Tensor block_causal_mask(const Grid& grid, int64_t frames_per_block);

}  // namespace ops

const OpRow& attention_row();
const OpRow& attention_causal_row();

}  // namespace parity
