// A batch of samples with padding, and the same samples one behind the other in one call: what engines with attention
// over sequences of several lengths (varlen) do.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "calls/padding_lengths.hpp"
#include "calls/part_boundaries.hpp"
#include "calls/ragged_batch.hpp"

namespace parity {

/// What of a batch's value another of this shape has, sample behind sample: all tokens, or each sample's `last` alone.
/// No parts: it is something else.
PackedParts places_behind(const RaggedBatch& batch, const Shape& whole, const Shape& other, bool last);
/// All tokens, or, where it does not have them, the last.
PackedParts places_behind(const RaggedBatch& batch, const Shape& whole, const Shape& other);

/// An input of one side says which tokens of its batch are padding, and most shapes that differ are its own without.
std::optional<RaggedBatch> find_packed_batch(const RecordedSide& reference, const RecordedSide& port,
                                             const std::vector<CallShapes>& paths);

/// The order in which the other side has the samples: as the first values say that have one; else as in the batch.
RaggedBatch in_order_of_values(const RaggedBatch& batch, const RecordedSide& reference,
                               const std::vector<CandidateTensor>& tensors, const std::vector<CallShapes>& paths);

/// Of the reference's batch: its program goes on from the samples, one behind the other, at the boundaries that this
/// gives. Of the port's: its tensors are packed when they are read. Left out are values that have padding otherwise
/// (experts' rows, tables of positions), and values of the reference that are written to in place. nullopt: no side has
/// such a batch, and nothing changed. `paths`: call_shapes of the two; `dump`: the reference's. `notes`: says which
/// side pads, and how much was left out.
std::optional<PartBoundaries> match_packed(Program& reference, const Dump& dump, const RecordedSide& port,
                                           std::vector<CandidateTensor>& tensors, const std::vector<CallShapes>& paths,
                                           std::vector<std::string>& notes);

}  // namespace parity
