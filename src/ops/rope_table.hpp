// The precomputed half of 3-D rotary position embedding: unit circle points for frame, row and column.
// Su et al. 2021 (RoFormer); the axis split is Wan2.1's: of a head's d numbers, d - 4 (d // 6) turn by frame, 2 (d //
// 6) by row and by column.
#pragma once
#include <ATen/ATen.h>

#include <array>

#include "ops/op.hpp"

namespace parity {

enum class RopeForm {
  complex64,   // SkyReels-V2: fp32 frequencies, complex64 product
  complex128,  // Wan2.1: fp64 frequencies, complex128 product
  real,        // diffusers: fp64 frequencies, cosine and sine rounded to fp32
};

/// Tokens along frame, row, column.
using Grid = std::array<int64_t, 3>;

/// What a model precomputes for positions 0 .. length-1; the frame's, the row's and the column's columns side by side.
struct RopeTable {
  at::Tensor freqs;     // complex forms: (length, d / 2)
  at::Tensor cos, sin;  // real form: (length, d), every value twice
};

/// The table cut out for one video: what each token is turned by.
struct RopeTurn {
  at::Tensor turn;      // complex forms: (f * h * w, 1, d / 2)
  at::Tensor cos, sin;  // real form: (f, h, w, d)
};

namespace ops {

/// Formed as each original forms it, bit for bit; complex64, complex128 or float32.
RopeTable rope_table(int64_t length, int64_t head_dim, RopeForm form);

/// Throws Error when an axis of the grid is longer than the table.
RopeTurn rope_turn(const RopeTable& table, const Grid& grid);

}  // namespace ops

const OpRow& rope_table_row();

}  // namespace parity
