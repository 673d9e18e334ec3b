// How many tokens the samples of a batch have, and in which calls the other side runs them.
#pragma once
#include <optional>
#include <vector>

#include "calls/padding_lengths.hpp"
#include "calls/ragged_batch.hpp"
#include "pair/candidate.hpp"

namespace parity {

/// Shapes say how many tokens each call has; the first values that both sides have say which sample it is and on which
/// side of it the padding lies; that it is padding an input that masks it, or rows that are all the same. Where no name
/// is in common, the calls' lengths must differ. `paths`: call_shapes of the two.
std::optional<RaggedBatch> find_ragged_batch(const RecordedSide& reference, const RecordedSide& port,
                                             const std::vector<CandidateTensor>& tensors,
                                             const std::vector<CallShapes>& paths);

}  // namespace parity
