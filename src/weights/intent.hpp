// Which candidate tensor is supposed to hold which reference parameter: by equal names, else by the correspondence of
// names that content teaches (what pairs in most blocks pairs in all), else by likeness of names.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "weights/content.hpp"
#include "weights/names.hpp"

namespace parity {

/// A parameter, or the part of a fused or stacked one that corresponds to a whole parameter of the other side.
struct Unit {
  size_t tensor = 0;
  std::optional<Slice> slice;
  std::vector<int64_t> shape;  // of the slice
  bool constant = false;       // its content says nothing
  ParameterName name;          // form and block numbers tell the parts of a tensor apart
  int64_t count() const;
};

/// Reference unit `reference` is held by candidate unit `candidate`.
struct UnitMatch {
  size_t reference = 0, candidate = 0;
  Content content;
};

struct Intent {
  std::optional<size_t> candidate;
  bool same_name = false;  // equal names on both sides: these are authoritative
  std::string evidence;    // "name", "name as in 29 other pairs", "most similar name (0.71)"
};

/// By reference unit. `similar`: pairs that are alike without being equal; they count half.
std::vector<Intent> intents(const std::vector<Unit>& reference, const std::vector<Unit>& candidate,
                            const std::vector<UnitMatch>& held, const std::vector<UnitMatch>& similar);

}  // namespace parity
