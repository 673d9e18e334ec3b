// How far from the oracle a port may be where it is judged by the reference's own casts. Touches no tensor.
#pragma once
#include "core/result.hpp"
#include "core/segment.hpp"
#include "judge/limits.hpp"
#include "measure/evidence.hpp"

namespace parity {

/// The largest error that a valid arithmetic may have on `count` elements of this dtype. Zero where the oracle is zero
/// and every valid arithmetic gives zero: then nothing but zero is right.
Limit error_limit(const Errors& errors, double count, at::ScalarType dtype, const Segment& segment,
                  const Thresholds& limits);

/// The largest error, as relative L2, of fp64 values from the oracle on the same inputs.
double logic_limit(const Segment& segment, const Thresholds& limits);

/// Relative L2 within which a candidate is the recorded value but for rounding: an ordinary sum's, or what valid
/// arithmetics lie from it where that is little. The oracle's distance may be far more: they share the rounding of a
/// time to bf16, which it has not.
double near_recorded(const Evidence& evidence, const Segment& segment, const Thresholds& limits);

}  // namespace parity
