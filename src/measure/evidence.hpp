// What is measured about a port's tensor: numbers alone, read by the judge. measure/local.hpp computes them.
#pragma once
#include <c10/core/ScalarType.h>

#include "core/stats.hpp"

namespace parity {

/// d projected on g: how much of a hypothetical change is in a difference.
struct Projection {
  double amplitude = 0;  // <d, g> / <g, g>: 1 when d is g plus noise
  double z = 0;          // <d, g> / sqrt(sum (d g)^2): standard normal when the signs of d are random (sign-flip null)
  double explained = 0;  // 1 - ||d - g||^2 / ||d||^2
  double correlation = 0;  // <d, g> / (||d|| ||g||)
  double size = 0;         // ||g|| / ||reference||
  double elements = 0;     // how many elements carry the difference: (sum d^2)^2 / sum d^4

  /// Fisher's transform of the correlation over sqrt(elements): how unlikely a direction that has nothing to do with
  /// the difference would fit as well. Unlike `z` it grows without limit when few elements fit wholly.
  double fisher() const;
};

struct Evidence {
  at::ScalarType reference_dtype = at::kFloat, candidate_dtype = at::kFloat;  // candidate: what its values need
  Stats forced;                                                               // candidate against `recorded`
  OracleStats oracle;          // R and rho: errors of candidate and `recorded` against the oracle
  double unequal = 0;          // share of elements that differ bitwise from both `recorded` and `exact`, the nearer one
  double null_error = 0;       // largest relative L2 error of recorded, exact and reordered against the oracle
  double null_unequal = 0;     // largest share of elements of exact and reordered that differ bitwise from recorded
  Projection gain, null_gain;  // (candidate - recorded) on recorded; the larger of the same for exact and reordered
  double towards_zero = 0;     // of the elements that differ from recorded: share whose magnitude is smaller
};

}  // namespace parity
