// What most chunks of a division have in common: their extents, and how many rows of a batch lie in each.
#pragma once
#include "calls/division.hpp"

namespace parity {

/// `extents`: what explains most of the chunks, as they are or times the rows of a batch; and `outermost`: whether most
/// of what is divided so has it as its outermost axis, so that what flattens it with another lies chunk behind chunk,
/// too.
void find_extents(Division& found);

/// `rows` of each of the chunks: an op's result has batch and tokens as one axis where its module's has them as two.
void find_rows(Division& found);

}  // namespace parity
