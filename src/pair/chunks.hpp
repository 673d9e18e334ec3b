// Ports that run a prompt in chunks, token by token on a cache, or a batch sample by sample.
#pragma once
#include <string>
#include <vector>

#include "pair/candidate.hpp"
#include "pair/name_map.hpp"
#include "trace/program.hpp"

namespace parity {

/// A port that runs in chunks what the reference runs in one call has each tensor as often as there are chunks. Where
/// the shapes of a path's calls differ from the reference's along one axis alone, and add up to it there, they become
/// one tensor, joined along that axis when it is read. Where the reference itself calls a module several times, the
/// port's calls are as many in each chunk. Of a path that the reference does not have, the joined extents must be those
/// of one of its values, and no call's may be. All paths must have been divided alike: what was divided otherwise than
/// most (a state, scores over a growing cache) is left out. `map` may be null. `notes`: says the chunks.
std::vector<CandidateTensor> join_chunks(const Program& reference, std::vector<CandidateTensor> tensors,
                                         const NameMap* map, std::vector<std::string>& notes);

}  // namespace parity
