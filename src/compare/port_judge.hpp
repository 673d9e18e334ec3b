// Verdicts for any port, from evidence of its own inputs (design: "Replay through the port"). Touches no tensor.
#pragma once
#include <string>
#include <vector>

#include "compare/evidence.hpp"
#include "compare/result.hpp"
#include "compare/thresholds.hpp"

namespace parity {

/// A named change of the reference's program, and how well the port's difference fits it.
struct Finding {
  std::string fault;   // "norm eps", "GELU form", "extra rounding", …
  std::string detail;  // "1e-05 -> 1e-06 at blocks.0.norm1/native_layer_norm.0"
  Gate gate = Gate::logic;
  bool fixed_amplitude = true;  // the change has no free size: only an amplitude near 1 fits
  Projection fit;               // of (candidate - recorded) on (changed - unchanged)
  double null_amplitude = 0;    // largest |amplitude| of the null's arithmetics on the same direction
  double noise = 0;             // squared difference between right arithmetics, of the candidate's
  int rank = 0;                 // the lowest is named among those that explain equally well

  /// Share of the squared difference that the change explains, with its own amplitude where that is free.
  double explained() const { return fixed_amplitude ? fit.explained : fit.correlation * fit.correlation; }
};

/// The finding that explains the difference best, or nullptr when none is significant.
const Finding* best_finding(const std::vector<Finding>& findings, const Thresholds& limits);

/// Smallest amplitude of a direction that would have been significant here (6 sigma).
double detectable_amplitude(const Finding& finding, const Thresholds& limits);

/// Sets verdict, gate, limits and diagnosis of a row whose `forced` is measured.
void judge_port(OpResult& row, const Evidence& evidence, const Segment& segment, const std::vector<Finding>& findings,
                const Thresholds& limits);

}  // namespace parity
