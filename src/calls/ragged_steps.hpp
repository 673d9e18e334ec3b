// Whose step is whose, where samples have a call each: all steps of one before the next's, or a step of each in turn.
#pragma once
#include <vector>

#include "calls/padding_places.hpp"
#include "calls/ragged_batch.hpp"
#include "pair/candidate.hpp"

namespace parity {

/// Is this call's value, but for roundings, its part of the batch's?
bool agrees(const RaggedBatch& batch, size_t call, const at::Tensor& whole, const at::Tensor& part);

/// Of batches that differ in `by_step` the one in whose order most stored values of the last call agree (a text is the
/// same in all steps); the first of equals. `reference`: with its dump; `paths`: call_shapes of the two.
RaggedBatch in_likelier_order(const std::vector<RaggedBatch>& orders, const RecordedSide& reference,
                              const std::vector<CandidateTensor>& tensors, const std::vector<CallShapes>& paths);

}  // namespace parity
