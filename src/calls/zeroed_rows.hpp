// Padding that one side leaves at zero where the other computes on: attention over sequences of several lengths takes
// the tokens out of a batch and puts them back among zeros; a fused kernel gives zeros to queries that see no key.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "calls/packed_batch.hpp"
#include "calls/part_boundaries.hpp"
#include "pair/candidate.hpp"
#include "pair/name_map.hpp"

namespace parity {

/// An input of the reference says which tokens of its batch are padding. Where a value of one side has nothing
/// but zeros there, or one row again and again (a layer's bias), and the other's of its name has not, what either
/// computes of padding is left out: its boundaries and the port's tensors are of the tokens alone, sample behind
/// sample, and the program goes on from these and from the padding that was recorded. nullopt: no value says so, and
/// nothing changed. `map` may be null; `dump`: the reference's; `notes`: says how many values have lost padding.
std::optional<PartBoundaries> leave_out_zeroed_rows(Program& reference, const Dump& dump,
                                                    std::vector<CandidateTensor>& tensors, const NameMap* map,
                                                    std::vector<std::string>& notes);

}  // namespace parity
