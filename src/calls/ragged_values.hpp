// The values of samples of several lengths: those of a batch without its padding beside those of single calls.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "calls/padding_lengths.hpp"
#include "calls/part_boundaries.hpp"
#include "pair/candidate.hpp"

namespace parity {

/// Finds a ragged batch (calls/ragged_batch.hpp). Of the reference: the port's tensors are joined, sample behind
/// sample, and the program goes on from samples, one behind the other, at the boundaries that it gives. Of the port:
/// its batch is taken apart. Left out are tensors that have padding otherwise (experts' rows, tables of positions), and
/// values of the reference that are written to in place. nullopt: there is none, and nothing changed. `paths`:
/// call_shapes of the two; `dump`: the reference's. `notes`: says which side pads, and how much was left out.
std::optional<PartBoundaries> match_samples(Program& reference, const Dump& dump, const RecordedSide& port,
                                            std::vector<CandidateTensor>& tensors, const std::vector<CallShapes>& paths,
                                            std::vector<std::string>& notes);

}  // namespace parity
