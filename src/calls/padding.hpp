// One side pads what the other runs as it is: a prompt to a static shape, a text to its encoder's longest.
#pragma once
#include <string>
#include <vector>

#include "calls/padding_lengths.hpp"
#include "calls/part_boundaries.hpp"
#include "pair/candidate.hpp"
#include "pair/name_map.hpp"
#include "trace/program.hpp"

namespace parity {

/// Finds the padding (calls/padding_lengths.hpp) and leaves it out. The port's: its tensors are cut when they are read,
/// to the reference's shape or, under names of the port's own, to one of the reference's shapes. The reference's: as
/// `go_on_from_parts`, of the boundaries that it gives. Left out of the comparison is what has no counterpart without
/// padding: what is computed from rows selected by their values (experts), what is padded along one axis and differs
/// along another, and values of the reference that are written to in place. `map` may be null; `dump`: the reference's.
/// `notes`: says which side pads, and how much was left out.
PartBoundaries leave_out_padding(Program& reference, const Dump& dump, const RecordedSide& port,
                                 std::vector<CandidateTensor>& tensors, const NameMap* map,
                                 std::vector<std::string>& notes);

}  // namespace parity
