// The ranks of a parallel run as one candidate.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pair/candidate.hpp"
#include "ranks/shards.hpp"

namespace parity {

/// What one rank recorded.
struct RankRecording {
  Shard shard;
  std::vector<CandidateTensor> tensors;
  std::string file;
  std::function<at::Tensor(const std::string& name)> weight{};  // undefined for one that it has not; nullptr: has none
};

/// What a joined tensor is to become: the reference's value of that name, in the candidate's layout.
struct WholeTensor {
  std::vector<int64_t> shape;
  std::function<at::Tensor()> value;  // nullptr: not stored
};
using WholeTensors = std::map<std::pair<std::string, int>, WholeTensor>;  // by the candidate's path and call

/// `ranks`: by their number in the mesh. Placements that no recording says are those whose joined shape is the whole's:
/// split along the one axis that is shorter, else copies; where several fit (two axes of one length), those whose
/// values come nearest to the whole's. A tensor that some ranks do not have is joined from the others. What is not in
/// `wholes` is joined by its placements, or taken from one rank where all have the same; otherwise it is left out, and
/// counted. Copies are compared bitwise, so each is read once. `notes`: what was done. Throws Error, one line: ranks
/// that disagree about a placement, a placement that does not fit its tensor.
std::vector<CandidateTensor> join_shards(const std::vector<RankRecording>& ranks, const WholeTensors& wholes,
                                         std::vector<std::string>& notes);

/// The candidate's tensor that `sharded` makes; `like` gives its name.
CandidateTensor joined_tensor(const CandidateTensor& like, ShardedTensor sharded);

}  // namespace parity
