// What a row of a comparison by replay shows beside its verdict, and the replays that it is measured by.
#pragma once
#include <string>
#include <vector>

#include "core/segment.hpp"
#include "diagnose/finding.hpp"
#include "diagnose/findings.hpp"
#include "judge/limits.hpp"
#include "trace/lanes.hpp"
#include "trace/program.hpp"

namespace parity {

/// The replays that go in step, by LaneIndex.
std::vector<ReplayOptions> lane_options();

/// `value` with noise of relative size kPerturbation: the same in every run.
at::Tensor perturbed(const at::Tensor& value, size_t boundary);

/// The best of them first.
std::vector<Explanation> explanations(const std::vector<Finding>& found, const Thresholds& limits);

/// The cast placements that reach this boundary, beside the recorded one; nothing for a value that has none.
std::vector<DtypePath> cast_placements(const Program& program, const Segment& segment, const std::string& side,
                                       const at::Tensor& value, const BoundaryEvent& event,
                                       const std::vector<FaultHypothesis>& started);

}  // namespace parity
