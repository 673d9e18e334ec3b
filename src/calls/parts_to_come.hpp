// What of a port that still runs cannot be judged yet: values that may be parts of the reference's, whose other parts
// are yet to come.
#pragma once
#include <vector>

#include "pair/candidate.hpp"
#include "pair/port_pairing.hpp"

namespace parity {

/// The tensors that can be judged now, in their order; `pairs`: by name, of all that have arrived. A call whose values
/// have other extents from its first one on is a chunk, some of the samples, or padded: which calls of the reference it
/// is shows at the end (calls/chunks.hpp, calls/padding.hpp), so that it waits and all that comes after it. A value
/// that is shorter than others in its call (the last token's logits) waits alone, with what has its name, unless the
/// calls of this name have more by now than all of the reference's. Nothing waits that can be no part: another width,
/// which weights have, or more than others in its call.
std::vector<CandidateTensor> without_parts_to_come(const Program& reference,
                                                   const std::vector<CandidateTensor>& candidate,
                                                   const std::vector<PortPair>& pairs);

}  // namespace parity
