// Places by number: of names that are equal but for their numbers, most or all tell where each one's content belongs.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weights/intent.hpp"

namespace parity {

struct Place {
  std::string words;                // of the candidate's names, without numbers (weights/numbered.hpp)
  std::optional<size_t> candidate;  // unit; none: the candidate has no tensor of these words and numbers
};

/// By reference unit, for those whose group tells.
std::map<size_t, Place> ordered_places(const std::vector<Unit>& reference, const std::vector<Unit>& candidate,
                                       const std::vector<UnitMatch>& held);

}  // namespace parity
