// Verdicts for any port, from evidence of its own inputs (design: "Replay through the port"). Touches no tensor.
#pragma once
#include <string>
#include <vector>

#include "core/result.hpp"
#include "core/segment.hpp"
#include "diagnose/finding.hpp"
#include "judge/limits.hpp"
#include "measure/evidence.hpp"

namespace parity {

/// Sets verdict, gate, limits and diagnosis of a row whose `forced` is measured.
void judge_port(OpResult& row, const Evidence& evidence, const Segment& segment, const std::vector<Finding>& findings,
                const Thresholds& limits);

}  // namespace parity
