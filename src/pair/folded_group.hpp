// Values that a port's weights change together (pair/folded.hpp).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "pair/without_pairs.hpp"

namespace parity {

struct FoldedGroup {
  std::vector<size_t> members;  // paired boundaries
  std::vector<std::string>
      weights;        // what each member's tensor is, "the reference's with slices of axis 2 in another order"
  OffByBoundary off;  // what follows, without them
};

/// Do these values agree as they must behind a fold?
bool follows_closely(const Program& reference, const OffByBoundary& off);

/// What the tensor of b, one of those left out or of those that follow, is of the program's value there
/// (folded_in_weights); "" if nothing is known.
std::string folded_at(const ForcedPairs& forced, const WithoutPairs& found, size_t b);

/// From `b` on, `found` without it alone: what is computed from it and changed alike (q behind its norm, its halves
/// rotated), and what the same values are computed from (k, whose channels have q's order). nullopt when what follows
/// does not agree without all of these, or one is changed otherwise. One value and what is computed from it alone is no
/// group where it makes nothing agree that was off: a gain that a norm takes back stays a fault.
std::optional<FoldedGroup> folded_group(ForcedPairs& forced, const Program& reference, size_t b,
                                        const WithoutPairs& found);

}  // namespace parity
