// What is measured about a port's tensor: numbers alone, read by the judge. measure/local.hpp computes them.
#pragma once
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <optional>

#include "core/stats.hpp"

namespace parity {

/// What is left of d when g is taken off it.
struct SquaresLeft {
  double difference = 0, product = 0, direction = 0;  // ||d||^2, <d, g>, ||g||^2

  /// ||d - a g||^2.
  double left(double a) const { return std::max(0., difference + a * (a * direction - 2 * product)); }
};

/// d projected on g: how much of a hypothetical change is in a difference.
struct Projection {
  double amplitude = 0;  // <d, g> / <g, g>: 1 when d is g plus noise
  double z = 0;          // <d, g> / sqrt(sum (d g)^2): standard normal when the signs of d are random (sign-flip null)
  double z_rows = 0;     // the same of whole rows (last axis; of parts, where `project` is told of them), as a standard
                         // normal: an error that a later product spreads over a row counts once
  double explained = 0;  // 1 - ||d - g||^2 / ||d||^2
  double correlation = 0;  // <d, g> / (||d|| ||g||)
  double size = 0;         // ||g|| / ||reference||
  double rows_alike = 1;   // do d and g lie in the same rows (last axis)? The Bhattacharyya coefficient of the rows'
                           // shares of their squares: 1 if so, 0 where none has both
  double elements = 0;     // how many elements, or parts, carry the difference: (sum d^2)^2 / sum d^4
  SquaresLeft plain;       // without weights

  /// Fisher's transform of the correlation over sqrt(elements): how unlikely a direction that has nothing to do with
  /// the difference would fit as well. Unlike `z` it grows without limit when few elements fit wholly.
  double fisher() const;
  /// The smaller of the two in size: what elements and rows agree on.
  double sigma() const;
};

/// Against the oracle: distances over its norm; absolute where that is 0.
struct Errors {
  double scale = 0;           // norm of the oracle
  double error = 0;           // of the candidate
  double recorded_error = 0;  // of `recorded`
  double null_error = 0;      // the largest of all valid arithmetics
};

/// The rows (last axis) on which valid arithmetics agree, where a few others hold nearly all that these differ by:
/// padding at angles of a million radians, rows that see no key.
struct SettledRows : Errors {
  double share = 1;  // of all rows
};

/// A half-width format that holds every value of an fp32 candidate.
struct Narrower {
  at::ScalarType dtype = at::kHalf;
  double witnesses = 0;  // different values of the candidate where `recorded` lies an eighth of the format's step and
                         // more away from all its numbers: no rounding in fp32 brings those onto one
};

struct Evidence : Errors {
  at::ScalarType reference_dtype = at::kFloat, candidate_dtype = at::kFloat;  // candidate: what its values need
  Stats forced;                                                               // candidate against `recorded`
  OracleStats oracle;  // R and rho: errors of candidate and `recorded` against the oracle
  std::optional<SettledRows> settled;
  std::optional<Narrower> narrower;
  double unequal = 0;             // share of elements that differ bitwise from the nearest valid arithmetic
  double fullest_row = 0;         // of half width: share of all elements that differ from `recorded` in one row (last
                                  // axis), that with most of them
  double null_unequal = 0;        // largest share of elements of a valid arithmetic that differ bitwise from recorded
  double null_apart = 0;          // largest relative L2 of a valid arithmetic from recorded, where these lie far from
                                  // the oracle; else 0
  Projection gain, null_gain;     // (candidate - recorded) on recorded; the largest of the valid arithmetics. In half
                                  // width weighted by noise_by_element where that stands out more
  int64_t decided_otherwise = 0;  // integers: rows (last axis) that hold other numbers than under any valid arithmetic,
                                  // where all of these agree
  double towards_zero = 0;        // of the elements that differ from recorded: share whose magnitude is smaller
};

}  // namespace parity
