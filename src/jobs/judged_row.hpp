// One row of a comparison: measured, explained and judged. Where it stands out and no named fault explains it,
// arithmetic below the cast is tried; where what explains it is declared by name (--accept-path 'kv cache: fp16'), the
// row is judged again by the reference's program with that change.
#pragma once
#include "jobs/port_findings.hpp"

namespace parity {

struct RowValues {
  const at::Tensor& value;  // the candidate's
  const BoundaryEvent& event;
  const Segment& segment;
  const ValuesBefore& before;
};

/// Sets what is measured and judged in `row`; what explains it. `findings`: nullptr when nothing is to be named.
std::vector<Finding> judge_row(OpResult& row, const RowValues& values, PortFindings* findings,
                               const Thresholds& limits);

/// The same of a value that the port's weights alone make another: `value` is PortPair::folded, "the reference's
/// divided by 3.464". Its name is that, and it passes where that is declared by place or by name (--accept-path 'folded
/// into weights'). Nothing is looked for, and it is no earlier value that a later one may be.
void judge_folded(OpResult& row, const RowValues& values, const PortFindings* findings, const std::string& value,
                  const Thresholds& limits);

}  // namespace parity
