// The model's result, which a port has under a name of its own.
#pragma once
#include <vector>

#include "pair/port_pairing.hpp"
#include "pair/prints.hpp"

namespace parity {

/// Pairs the model's results of one size (one of each call, in a loop over tokens), whatever they hold, where as many
/// tensors of the candidate are left of that size, in their order, and each lies behind what is paired before it; where
/// nothing is paired, it must have the result's shape or be among the candidate's last (logits alone, their batch and
/// tokens merged or exchanged: `here`, the reference's own values, and `there` say how). Leaves out results that a pair
/// covers.
void pair_result(PortPairing& pairing, const Program& reference, const std::vector<CandidateTensor>& candidate,
                 const Prints& here, const Prints& there);

/// Where a pair by content of the candidate's last tensor has the very numbers of the model's result, and nothing
/// covers that, it is the result: behind logits a bias of zeros is added. `here`: the reference's values.
void take_for_result(PortPairing& pairing, const Program& reference, const Prints& here);

}  // namespace parity
