// The verdict on what was measured of one value that an op computes, without named changes.
#pragma once
#include "judge/port.hpp"

namespace parity::testing {

inline OpResult judged_evidence(const Evidence& evidence) {
  OpResult row;
  row.forced = evidence.forced;
  Segment segment;
  segment.arithmetic = true;
  judge_port(row, evidence, segment, {}, Thresholds());
  return row;
}

}  // namespace parity::testing
