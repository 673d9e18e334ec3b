// What the inputs of a side say of its padding: masks are zero there, and nowhere else.
#pragma once
#include <vector>

#include "calls/padding_tokens.hpp"
#include "calls/ragged_batch.hpp"
#include "calls/recorded_side.hpp"

namespace parity {

/// The batches of which an input of this side says which tokens are padding: zeros among ones of (samples, tokens), in
/// front or behind. Where the calls of each lie in the other's: one behind the other.
std::vector<RaggedBatch> masked_batches(const RecordedSide& side);

/// Is an input of this side zero along this padding, and nowhere else for all samples? These may have several lengths.
bool has_mask_of(const RecordedSide& side, const Padding& padding);

/// Is an input of this side zero where `tokens` (samples, tokens; bool) are not, and nowhere else?
bool has_mask_of(const RecordedSide& side, const at::Tensor& tokens);

}  // namespace parity
