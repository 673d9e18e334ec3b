// Which named changes of the reference's program explain what a port has at one boundary.
#pragma once
#include <optional>
#include <vector>

#include "diagnose/faults/catalogue.hpp"
#include "diagnose/finding.hpp"
#include "measure/local.hpp"
#include "trace/lanes.hpp"

namespace parity {

/// The replays of the reference's program that go in step: fp64, the eight valid arithmetics of trace/replay.hpp in its
/// order, fp64 on perturbed values, and the reference on its own values.
enum LaneIndex : size_t {
  kOracle,
  kRecorded,
  kExact,
  kReordered,
  kLastValid = kReordered + 5,
  kPerturbed,
  kOwn,
  kLanes
};

/// What valid arithmetics other than the recorded kernels have at the boundary: those of the lanes, and other valid
/// algorithms among the variant runs.
std::vector<at::Tensor> valid_values(const BoundaryEvent& event, const std::vector<FaultHypothesis>& hypotheses);

/// Every hypothesis that reaches the boundary (`hypotheses` by deviation number), and a gain of all values, projected
/// on the difference. Changes of fixed size were run beside the replay on the recorded kernels, exactly only where
/// they change something, so that they predict single flipped roundings; free sizes (an eps, a gain) are estimated.
/// `final_op`: the op that made the boundary's value, -1 for none.
std::vector<Finding> match_hypotheses(const BoundaryEvent& event, const at::Tensor& candidate,
                                      const std::vector<FaultHypothesis>& hypotheses, int final_op);

/// What `changed`, the value that the reference's program would have at the boundary, explains; nullopt where it is
/// what the program has.
std::optional<Finding> match_value(const BoundaryEvent& event, const at::Tensor& candidate,
                                   const std::vector<FaultHypothesis>& hypotheses, const FaultHypothesis& hypothesis,
                                   const at::Tensor& changed);

/// The amplitude a for which round(wide + a direction) equals `candidate` at most elements: each element allows an
/// interval, and the point that most intervals share is found by sorting their ends. Its error falls as 1 / N where
/// regression's falls as 1 / sqrt(N). wide, direction: fp64, `candidate`: a half dtype; equal numbers of elements.
double amplitude_by_rounding(const at::Tensor& wide, const at::Tensor& direction, const at::Tensor& candidate);

}  // namespace parity
