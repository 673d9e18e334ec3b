// Orders of axes that a few elements of each tensor gave, held against all of them.
#pragma once
#include <vector>

#include "pair/port_pairing.hpp"

namespace parity {

/// A tensor of the reference's own shape that is read with its axes in another order is read as it is where all its
/// elements agree so (distance below 0.05) and the other order is not clearly nearer: samples of two like rows of a
/// batch say little. Notes which of the candidate's own names are read in another order: one that is wrong by just that
/// is right in such a reading.
void prefer_plain_layouts(PortPairing& pairing, const Dump& dump, const Program& reference,
                          const std::vector<CandidateTensor>& candidate);

}  // namespace parity
