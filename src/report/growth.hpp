// How the free-running error grows with depth.
#pragma once
#include <string>
#include <vector>

#include "core/result.hpp"

namespace parity {

/// A path without the number of its layer, and that number: "blocks.3.norm1" is {"blocks.*.norm1", 3}.
struct LayerPlace {
  std::string pattern;
  int number = -1;  // the path has none
};
LayerPlace place_of(const std::string& path);

/// Rows of repeated blocks: paths that differ in the index of a module alone ("blocks.*"), of one kind and shape; the
/// shortest such pattern of a reference and dtype.
struct Growth {
  std::string reference, pattern, dtype;
  int depth = 0;        // how many of them
  double exponent = 0;  // p of a least-squares fit of free rel_l2 = c depth^p in logarithms
};

/// Patterns of at least four blocks with a free-running error. Independent roundings add up to p = .5, a bias to 1.
std::vector<Growth> error_growth(const Report& report);

}  // namespace parity
