// One side runs in several calls what the other runs in one: a prompt in chunks, guidance in two calls, samples.
#pragma once
#include <string>
#include <vector>

#include "calls/call_shapes.hpp"
#include "pair/candidate.hpp"
#include "trace/program.hpp"

namespace parity {

/// Gives the port the calls that the reference has (calls/division.hpp). What the port has in chunks becomes one
/// tensor, joined along its axis when it is read; what the reference has in chunks is divided so, and what both its
/// calls have whole is given to each. Samples may come in another order: that of the first values that tell it. Of a
/// path that the reference does not have, the extents that this gives must be those of one of its values, and the
/// port's own may not be. What was divided otherwise than most (a state, scores over a growing cache) is left out.
/// `paths`: call_shapes of the two. `notes`: says the chunks. The tensors read from `dump`, the reference's.
std::vector<CandidateTensor> match_calls(const Program& reference, const Dump& dump,
                                         std::vector<CandidateTensor> tensors, std::vector<CallShapes> paths,
                                         std::vector<std::string>& notes);

}  // namespace parity
