// Into how many chunks each pass of a model is divided, where these are not as many: a prompt in chunks, then tokens.
#pragma once
#include <set>
#include <vector>

#include "calls/call_shapes.hpp"

namespace parity {

/// Chunks of each pass: {2, 1, 1, 1} for a prompt in two chunks and three tokens behind it.
using ChunksOfPasses = std::vector<size_t>;

/// How often most of them were called, of which none of the others has the same shapes (an encoder before a loop, which
/// both sides run once, may have more modules than what is looped over); 0: there are none.
size_t usual_times(const std::vector<Calls>& paths, const std::vector<Calls>& others);

/// What most paths that both sides have say, shape by shape; where none does, most of the port's own names, each beside
/// all of the reference's. Empty: nothing, or as many in each pass. `of_port`: the port is what is in chunks.
ChunksOfPasses chunks_of_passes(const std::vector<CallShapes>& paths, const std::vector<Calls>& reference,
                                bool of_port);

}  // namespace parity
