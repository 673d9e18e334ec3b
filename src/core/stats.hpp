// What is measured about a pair of tensors: numbers alone. measure/measure.hpp computes them.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace parity {

/// d = candidate - reference, elementwise in fp64 (complex tensors: as pairs of reals). Non-finite elements are counted
/// by position and left out of the rest. A number that does not exist (relative to a zero norm, ULP of a complex or
/// integer tensor, …) is nullopt, never 0 or NaN.
struct Stats {
  int64_t count = 0;                        // elements
  std::optional<double> max_abs, mean_abs;  // of |d|
  std::optional<double> rmse;               // sqrt(mean d^2)
  std::optional<double> rel_l2;             // ||d|| / ||reference||
  std::optional<double> normalized_max;     // max |d| / mean |reference|
  std::optional<double> cosine;
  std::optional<double> p95_abs, p99_abs;  // exact percentiles of |d|, linear interpolation between ranks
  std::optional<double>
      max_ulp;  // of the reference's dtype; ordered integers, so +0 and -0 are 0 apart. Floats of <= 64 bits only
  std::optional<double>
      bitwise_equal_share;     // share of elements with equal bits (NaN equals NaN, +0 differs from -0); 1 - phi
  std::optional<double> gain;  // <d, reference> / <reference, reference>
  int64_t nan_reference = 0, nan_candidate = 0;  // non-finite elements (NaN or Inf)
  int64_t special_mismatch = 0;                  // positions where the two differ in being NaN, +Inf, -Inf or finite
  std::vector<int64_t> worst_index;              // of max |d|; empty for a scalar or no data
  double worst_reference = 0, worst_candidate = 0;
  double reference_norm = 0, difference_norm = 0;
  int64_t zeros_reference = 0;
  bool constant_reference = false;  // all elements equal (more than one element)
  bool constant_candidate = false;
};

/// Elements with equal bits as a share: of no elements all; none where bits say nothing (bitwise_equal_share does not
/// exist).
inline double equal_share(const Stats& s) { return s.bitwise_equal_share.value_or(s.count == 0 ? 1 : 0); }

/// Errors of both sides against an oracle o (fp64): R = ||candidate - o|| / max(||reference - o||, floor ||o||), rho =
/// correlation of the two error vectors.
struct OracleStats {
  std::optional<double> ratio;                             // R
  std::optional<double> correlation;                       // rho, in [-1, 1]
  std::optional<double> reference_error, candidate_error;  // relative L2 of each side against the oracle
  double scale = 0;                                        // ||o||; 0: only the distances exist
  double reference_distance = 0, candidate_distance = 0;   // ||reference - o||, ||candidate - o||: absolute
};

}  // namespace parity
