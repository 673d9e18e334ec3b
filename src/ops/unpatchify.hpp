// Tokens back to a latent video: the inverse of cutting into patches, no arithmetic.
#pragma once
#include <ATen/ATen.h>

#include <array>

#include "ops/op.hpp"
#include "ops/rope_table.hpp"

namespace parity {
namespace ops {

/// x (batch, f * h * w, pt * ph * pw * channels), channels fastest -> (batch, channels, f * pt, h * ph, w * pw).
at::Tensor unpatchify(const at::Tensor& x, const Grid& grid, const std::array<int64_t, 3>& patch);

}  // namespace ops

const OpRow& unpatchify_row();

}  // namespace parity
