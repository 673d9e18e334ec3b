// How far the verdicts of `compare` reach.
#pragma once
#include <string>
#include <vector>

#include "core/result.hpp"
#include "core/segment.hpp"
#include "pair/candidate.hpp"
#include "pair/port_pairing.hpp"

namespace parity {

/// What of the reference is compared, covered or neither, and how long the stretches between compared points are.
/// `uncovered`: boundaries that each become a row with verdict missing.
Coverage port_coverage(const Program& program, const std::vector<CandidateTensor>& candidate,
                       const PortPairing& pairing, const std::vector<Segment>& segments,
                       std::vector<size_t>& uncovered);

}  // namespace parity
