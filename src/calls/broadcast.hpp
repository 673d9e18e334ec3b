// What one side computes once for all samples, and the other for each: positions, RoPE's tables, a time's embedding.
#pragma once
#include <vector>

#include "pair/candidate.hpp"
#include "pair/name_map.hpp"
#include "trace/program.hpp"

namespace parity {

/// Gives a tensor the shape of the reference's value of its name where the two are broadcast to one another: where its
/// extent is 1, or it lacks the outermost axes, it is repeated, if the reference's recorded value is itself the same
/// all along them; where the reference's extent is 1 one of its slices is taken, if they are equal bit by bit. Whatever
/// differs keeps its shape, which is then its verdict. `map` may be null; `dump`: the reference's.
void broadcast(const Program& reference, const Dump& dump, std::vector<CandidateTensor>& tensors, const NameMap* map);

}  // namespace parity
