// The pairs of a comparison as a map file: kept for the next run, or to be filled in where a pairing failed.
#pragma once
#include <string>
#include <vector>

#include "jobs/sides.hpp"

namespace parity {

/// Rules that give back the pairs of `sides` where equal names do not (of sides without a program: those of `rows`),
/// each tried; then, as comments, the pairs that no rule can say, the reference's points without a counterpart, each
/// a rule to be filled in, and the candidate's tensors without a reference.
std::string pairs_map(const Sides& sides, const std::vector<OpResult>& rows);

}  // namespace parity
