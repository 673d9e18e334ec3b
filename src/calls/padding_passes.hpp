// Which passes of a model differ from the other side's by the same shapes: of guidance's two prompts each has a length.
#pragma once
#include <vector>

#include "calls/call_shapes.hpp"

namespace parity {

/// The paths that both sides have, with the calls of those passes alone that differ alike, group by group.
std::vector<std::vector<CallShapes>> passes_that_differ_alike(const std::vector<CallShapes>& paths);

}  // namespace parity
