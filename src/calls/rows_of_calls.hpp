// Calls that each have one row of what the reference has of all tokens at once: the logits of their last token, of a
// prompt in chunks or of decode steps.
#pragma once
#include <string>
#include <vector>

#include "calls/part_boundaries.hpp"
#include "pair/candidate.hpp"
#include "pair/name_map.hpp"
#include "trace/program.hpp"

namespace parity {

/// Where the reference has a value in one call, and the port one row of it, of the same extents, in each of several,
/// the rows are joined: each is the one of the reference's rows that it is near to, and to no other, later call by
/// call. One such value tells for all, and the program goes on from these rows at the boundaries that this gives. Where
/// none tells, the last call's row alone is left, with the reference's call: that of the last token. The last axis (of
/// features) is never taken for that of the tokens. `map` may be null; `dump`: the reference's; `notes`: says which
/// rows.
PartBoundaries join_rows_of_calls(Program& reference, const Dump& dump, std::vector<CandidateTensor>& tensors,
                                  const NameMap* map, std::vector<std::string>& notes);

}  // namespace parity
