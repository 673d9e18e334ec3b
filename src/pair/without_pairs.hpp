// The reference's program between the pairs, run on the candidate's values without some of them.
#pragma once
#include <map>
#include <vector>

#include "pair/forced_pairs.hpp"

namespace parity {

struct WithoutPairs {
  PartOnPairs part;
  OffByBoundary off;                    // the values that follow
  OffByBoundary near;                   // by unpaired boundary of that shape: how far `sought` is from its value
  std::map<size_t, at::Tensor> values;  // of those left out and those that follow: what the program has there
};

/// `group`: paired boundaries, left out under all their names. `next`: the paired values that are computed from theirs.
/// `sought`: a tensor that may be one of the part's unpaired values; undefined, none is looked at.
WithoutPairs without_pairs(ForcedPairs& forced, const Program& reference, const std::vector<size_t>& group,
                           const std::vector<size_t>& next, const at::Tensor& sought = {});

}  // namespace parity
