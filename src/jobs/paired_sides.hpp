// The tensors of two opened sides, brought into the same calls, batches and shapes, and paired.
#pragma once
#include "core/progress.hpp"
#include "jobs/sides.hpp"

namespace parity {

/// Fills `pairing` and begins `warnings`, with what a person should know of it. The port's tensors are joined, divided
/// or put in order, and the reference's program is rewritten, where one side ran otherwise than the other. The
/// reference must be replayable. Throws Error for a map that does not fit the two.
void pair_sides(Sides& sides, const ShareDone& progress);

}  // namespace parity
