// Attention in tiles (tile_attention.hpp) where the processor multiplies pairs of bf16 (AVX512_BF16: AMD since Zen 4,
// Intel since Cooper Lake), which Highway 1.0 has no operation for.
#pragma once
#include "kernels/cpu/tile_attention.hpp"

namespace parity::kernels {

/// Has this processor, and has its operating system, what `attend_bf16_pairs` needs?
bool has_bf16_pairs();

/// softmax(scale q k^T) v; a.bias must be null. Scores are exact products added in fp32 (vdpbf16ps; it takes numbers
/// below 2^-126 for 0); weights stay fp32 and meet the values widened, since weights rounded to bf16, as LibTorch's
/// fused kernel has them, would add as much error again as the result's own rounding.
void attend_bf16_pairs(const TileAttend<uint16_t>& a, std::vector<float>& work);

}  // namespace parity::kernels
