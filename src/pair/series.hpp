// Tensors of one name but for a number, `decoder_0`, `decoder_1`, …: a port's own names of a list of modules.
#pragma once
#include <vector>

#include "pair/port_pairing.hpp"

namespace parity {

/// Pairs the unpaired tensors of each such list with the results of a list of modules: that which its other tensors are
/// paired with, all alike, else the only outermost one that is as long, of the same shapes, and unpaired as a whole.
/// Whatever they hold: for a port that is known to be wrong. True when there is a pair more.
bool pair_series(PortPairing& pairing, const Program& reference, const std::vector<CandidateTensor>& candidate);

}  // namespace parity
