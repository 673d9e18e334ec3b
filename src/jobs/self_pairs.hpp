// An optimisation beside what it optimises, inside one model: measured and judged.
#pragma once
#include "core/result.hpp"
#include "models/model.hpp"

namespace parity {

/// A row "optimised/<path>". `truth`: the same pairs in fp64, where the one of the same path is the yardstick:
///   fp64           the two agree within the limit of logic
///   fp32 and less  the optimised value lies no further from fp64 than the baseline does, up to chance
///   with an expected error  the difference has the size that the quantisation step makes, up to chance
OpResult judge_self_pair(const SelfPair& pair, const std::vector<SelfPair>& truth, const std::string& dtype);

}  // namespace parity
