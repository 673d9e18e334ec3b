// YaRN: RoPE's frequencies stretched for more positions than were trained on (Peng et al. 2023, arXiv:2309.00071).
#pragma once
#include <ATen/ATen.h>

namespace parity {

struct Yarn {
  double theta = 150000, factor = 32;  // base; how many times more positions
  double beta_fast = 32,
         beta_slow = 1;               // turns within the trained positions: above fast as trained, below slow stretched
  int64_t original_positions = 4096;  // trained on
  bool truncate = false;              // round the ramp's ends to whole dimensions
};

/// Radians a position, (head_dim / 2) fp64. Between the two betas a linear ramp over the dimensions.
at::Tensor yarn_frequencies(const Yarn& yarn, int64_t head_dim);

/// What cos and sin are multiplied with: 0.1 ln(factor) + 1.
double yarn_attention_factor(const Yarn& yarn);

/// The table in the digits that `recorded` has (fp32, rounded some eight times on the way), if it is the same table;
/// undefined or another: `computed` rounded to fp32. Equal up to 1e-6, fp32's roundoff sixteen times.
at::Tensor yarn_table(const at::Tensor& computed, const at::Tensor& recorded);

}  // namespace parity
