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

}  // namespace parity
