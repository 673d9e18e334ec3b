// Which readings of a tensor are worth a look: orders of its axes, parts of it, layouts that engines keep.
#pragma once
#include <vector>

#include "pair/fingerprint.hpp"

namespace parity {

/// The extents of the axes that are longer than 1.
std::vector<int64_t> longer_axes(at::IntArrayRef shape);

/// Readings of a tensor of this shape, without samples; the first: as it is. `parts`: of fused tensors, too.
/// `engine_layouts`: heads whose rows are interleaved or in halves, and scores over a padded key cache, too.
std::vector<Reading> readings_of(const std::vector<int64_t>& shape, bool parts, bool engine_layouts);

}  // namespace parity
