// Ranks whose numbers have another width than the others'.
#pragma once
#include <optional>

#include "diagnose/shard_faults.hpp"

namespace parity {

/// A part, or the weight of the module that it comes from, whose values all fit a narrower dtype that those of other
/// ranks do not fit.
std::optional<ShardFault> narrower_part(const ShardedTensor& tensor);

}  // namespace parity
