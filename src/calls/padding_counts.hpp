// Integers that padding changes wherever it lies.
#pragma once
#include <set>

#include "calls/part_boundaries.hpp"

namespace parity {

/// Boundaries whose integers an op counts over tokens and padding, or that say places among what has padding otherwise:
/// they have no counterpart without. `of_tokens`: boundaries whose padding is left out; `left_out`: those that are not
/// compared.
std::set<size_t> counts_over_padding(const Program& program, const std::set<size_t>& of_tokens,
                                     const std::set<size_t>& left_out);

/// go_on_from_parts of what padding does not change otherwise; what cannot go on from its tokens is left out, too.
PartBoundaries go_on_from_tokens(Program& program, PartBoundaries boundaries, const std::set<size_t>& of_tokens,
                                 std::set<size_t>& left_out);

}  // namespace parity
