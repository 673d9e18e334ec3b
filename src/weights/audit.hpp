// The weight audit: which parameter of a port holds which of the reference, and every conversion fault by name.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "weights/units.hpp"

namespace parity {

/// A reference parameter (or part of one) and its counterpart, sound or not.
struct WeightPair {
  size_t reference = 0, candidate = 0;  // of the sides' parameters
  std::optional<Slice> reference_part;  // of a fused reference tensor
  Layout layout;                        // candidate -> reference (or its part)
  bool tied = false;                    // the candidate stores it once for several reference parameters
  bool sound = false;
  std::string evidence;  // why these two: "equal names", "content", …
};

struct AuditResult {
  std::vector<OpResult> rows;     // one a reference parameter, in its order; then extra candidate tensors
  std::vector<WeightPair> pairs;  // the mapping, in the reference's order
  Coverage coverage;
  std::vector<std::string> warnings;
};

/// Content decides what a candidate tensor holds, names what it was supposed to hold; a row fails where they disagree:
/// explanations[0].change.fault is one of missing, extra, wrong layer, swapped, duplicated, misplaced, transposed,
/// reshaped, rows permuted, axis permuted, shuffled, interleaved, empty, rounded, truncated, scaled, scaled along an
/// axis, sign flipped, offset, zero, constant, nan, rows differ, values differ, shape, dtype. Constant tensors (norms
/// of ones) pair by name and say so. A parameter stored in a narrower dtype passes when each value was rounded once, to
/// nearest. The 1.3B shapes (825 tensors, 5.7 GB fp32 against 2.8 GB bf16, 24 faults) take 14.5 s of CPU and 1.2 GB.
/// Throws Error for damaged data.
AuditResult audit_weights(const WeightSide& reference, const WeightSide& candidate, const AuditProgress& progress);

}  // namespace parity
