// Boundaries that are parts of recorded values: a prompt's tokens without the padding, the samples of a batch.
#pragma once
#include <map>

#include "trace/program.hpp"

namespace parity {

/// What of a boundary's value is compared, by boundary. The parts of one do not overlap and begin with the same axis.
using PartBoundaries = std::map<size_t, PackedParts>;

/// These boundaries are of their parts alone, and the program goes on from them and from the rest that was recorded,
/// or, where it was not, computed. Values that are written to in place stay whole. Boundaries keep their indices.
/// Returns those that changed.
PartBoundaries go_on_from_parts(Program& program, const PartBoundaries& boundaries);

}  // namespace parity
