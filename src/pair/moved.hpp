// Boundaries that moved: a port that draws the line between two modules elsewhere.
#pragma once
#include <vector>

#include "pair/candidate.hpp"
#include "pair/forced_pairs.hpp"
#include "pair/port_pairing.hpp"

namespace parity {

/// A release that scales the embedding inside its module and one that does so behind it record other values under one
/// name, and neither is wrong. Replays the reference's program once on the candidate's values; where a pair is grossly
/// off and so is what follows from it, the stretch is run again without the pair, and with the candidate's tensor in
/// the place of each other value between the pairs before and behind it. What makes the values that follow agree is
/// believed:
///   - another place: the pair is moved there, with a note that says the map rule; if the tensor is wrong there, that
///     row fails, and its name is that of the value which the port has;
///   - the place of a value that has its own counterpart: the pair is dropped, with a note;
///   - none, but the program goes on from its own value: the pair stays, fails, and is not gone on from; where the
///     port's weights make up for what is between the two (pair/folded.hpp; of q and k together,
///     pair/folded_group.hpp), the pair says so.
/// Pairs that a map file gives are the user's word and stay; of what is above only the last is looked for there.
/// Siblings that content alone has paired crosswise (q with v's values) are put in the order in which the port computes
/// them where what follows agrees only so: then they are wrong, not what reads them. Throws Error for unusable
/// recordings.
void move_boundaries(PortPairing& pairing, const Dump& dump, const Program& reference,
                     const std::vector<CandidateTensor>& candidate);

/// The last of these alone: pairs that are computed from a common value, or from which a common value is computed.
void exchange_siblings(ForcedPairs& forced, const Program& reference);

}  // namespace parity
