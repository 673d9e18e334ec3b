// Summands of an all-reduce that is still to come, where no recording says so.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ranks/join_shards.hpp"
#include "trace/program.hpp"

namespace parity {

/// Tensors whose copies differ along an axis of the mesh, though all that is directly computed from them is alike on
/// its ranks, hold partial sums: between the two lies an all-reduce. They become sums of their parts, if these come
/// nearer to the reference's value than a copy does (ranks that gather what they computed from different values are
/// alike, too). Where what follows differs, the all-reduce is missing, and they stay as they are. `counterparts`:
/// boundary of the reference -> index into `tensors`; placements that a recording says are left alone. `notes`: how
/// many, and the first.
void read_partial_sums(const Program& reference, const std::map<size_t, size_t>& counterparts,
                       const WholeTensors& wholes, std::vector<CandidateTensor>& tensors,
                       std::vector<std::string>& notes);

}  // namespace parity
