// How many tokens one side has, and the other with padding.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "calls/call_shapes.hpp"
#include "calls/padding_places.hpp"
#include "calls/padding_tokens.hpp"
#include "pair/candidate.hpp"
#include "trace/program.hpp"

namespace parity {

/// Shapes say how many tokens there are; the content of what is recorded first says whether the padding comes before or
/// behind, and whether it is one: rows that are all the same, or that an input of their side masks. Tokens that one
/// side lacks are none. `paths`: those of the two; `of_selections`: paths_of_selections of the reference.
std::optional<Padding> find_padding(const RecordedSide& reference, const RecordedSide& port,
                                    const std::vector<CandidateTensor>& tensors, const std::vector<CallShapes>& paths,
                                    const std::set<std::string>& of_selections);

}  // namespace parity
