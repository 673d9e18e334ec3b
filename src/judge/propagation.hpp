// The gate of the free-running model: is each op, on the values that the port itself computed before it, still the
// reference's op? Touches no tensor.
#pragma once
#include <optional>

#include "core/result.hpp"

namespace parity {

/// What the reference's own program does when it runs free in other valid arithmetic on this machine.
struct FreeNull {
  double own = 0;    // largest relative L2 of its values against the op in fp64 on its own values before it
  double moved = 0;  // largest relative L2 from the reference's values: how far the program itself moves
  int runs = 0;
};

struct PropagationInput {
  bool is_fp64 = false;            // the run's floats are fp64: nothing is rounded, the logic limit holds
  double unit = 0;                 // unit roundoff of the value's dtype
  double largest_input_error = 0;  // free-running relative L2 of the paired values that the op is computed from
  std::optional<Stats> own;  // the port's free value against the op in fp64 on the port's own values before it; absent:
                             // its free run is bitwise the reference's, or an opaque op lies between
  FreeNull null;
};

/// After `judge_local`, for rows that pass: sets `predicted_free`, the limit and `free_oracle`, and the verdict when
/// the op's own error in the free run is more than its rounding (gate propagation: state is carried that the inputs do
/// not show). Such a row is never the first divergence.
void judge_propagation(OpResult& row, const PropagationInput& input);

/// Times the op's rounding: how far two measurements of the rms rounding of `elements` elements lie apart by chance.
double rounding_factor(int64_t elements);

}  // namespace parity
