// Pairs on trial: which tensor of a wrong port stands for a value, told by what the port computes from it.
#pragma once
#include <map>
#include <set>
#include <vector>

#include "pair/port_pairing.hpp"
#include "pair/prints.hpp"

namespace parity {

/// What is known when content no longer says anything: the pairs so far and one replay on their values.
struct TrialScene {
  const Dump& dump;
  const Program& reference;
  const std::vector<CandidateTensor>& candidate;
  const PortPairing& pairing;
  const Prints &here, &there;           // the reference's values on the port's, the candidate's
  const std::map<size_t, double>& off;  // by paired boundary: relative L2 there
  const std::set<size_t>& vouched;      // boundaries whose pairs are known to be off: what follows from them agrees
};

/// Is that boundary's pair, of those in `off` as above, as near as pairs of a right port are?
bool comes_out(const std::map<size_t, double>& off, size_t boundary);

/// From a fault on a port's values are no longer the reference's, but those after the fault follow from those before it
/// as the reference's program has it. So each free tensor of the candidate that fits is put in the place of each
/// unpaired boundary before the first value that does not come out (a pair that is off, a result that has no pair), the
/// program goes on from it for a few boundaries, and the pair is taken that makes most of them agree with what the port
/// has, if that is much more than agree without it. Where none does, siblings (q, k and v; gate and up) may all be
/// wrong by one value that was not recorded, and are put in their places at once. Empty: there is none. `work`:
/// multiplications left for this; reduced.
std::vector<PortPair> pairs_on_trial(const TrialScene& scene, double& work);

}  // namespace parity
