// Verdicts where nothing can be replayed: inherited and own errors come together.
#pragma once
#include "core/result.hpp"

#include <c10/core/ScalarType.h>

namespace parity {

/// Relative L2 differences that say something where nothing can be replayed.
struct PlainLimits {
  double pass;  // up to here: within two roundings
  double fail;  // from here on: no chain of roundings is to blame
};
PlainLimits plain_limits(at::ScalarType reference, at::ScalarType candidate);

/// Fills verdict, gate, diagnosis and limits of a row whose `free` is measured; `dtype`: the reference's, `candidate`:
/// what the candidate's values need.
void judge_plain(OpResult& row, at::ScalarType dtype, at::ScalarType candidate);

}  // namespace parity
