// What most chunks of a division have in common: their extents, and how many rows of a batch lie in each.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "calls/division.hpp"
#include "calls/division_axes.hpp"

namespace parity {

/// `extents`: what explains most of the chunks, as they are or times the rows of a batch; and `outermost`: whether most
/// of what is divided so has it as its outermost axis, so that what flattens it with another lies chunk behind chunk,
/// too.
void find_extents(Division& found);

/// Extents, and are they those of the first axis?
using FirstExtents = std::pair<Extents, bool>;

/// Where no name is in common, what most values with so many calls say in `calls`. Of the side in chunks: along which
/// axis these differ; as many samples, if they are alike. Of the side that runs all `anew`: by how much each grows.
/// nullopt: there are none.
std::optional<FirstExtents> extents_of_calls(const std::vector<Calls>& values, size_t times,
                                             const std::vector<size_t>& calls, bool anew);

/// `rows` of each of the chunks: an op's result has batch and tokens as one axis where its module's has them as two.
void find_rows(Division& found);

}  // namespace parity
