// Pairing on the port's own earlier values: one wrong tensor does not unpair those after it.
#pragma once
#include <functional>

#include "pair/port_pairing.hpp"
#include "pair/prints.hpp"

namespace parity {

/// Pairs by content what is left, the reference's values being those of `here`.
using PairMore = std::function<void(PortPairing& pairing, const Prints& here)>;

/// After a pairing by content of the free run: what is doubtful of it is paired anew. Names learned where content is
/// sure are carried to where it is not (pair/families.hpp), the reference's program is replayed on the candidate's
/// values so paired, and `more` pairs by the content that this gives; again until nothing is added. A carried pair
/// whose content differs stays when what the candidate has after it agrees with the reference's program on it, or when
/// nothing compared follows from it: there the fault is. What a fault suggests against a learned name is not believed.
/// Where neither content nor names say anything pairs are tried (pair/trials.hpp). `here`, `there`: what is looked at
/// of the reference, its own values, and of the candidate.
void pair_in_step(PortPairing& pairing, const Dump& dump, const Program& reference,
                  const std::vector<CandidateTensor>& candidate, const Prints& here, const Prints& there,
                  const PairMore& more);

}  // namespace parity
