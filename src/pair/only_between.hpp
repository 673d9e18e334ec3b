// Of values that are wrong one after the other: the one tensor that can be a module's result, by order and shape.
#pragma once
#include <optional>

#include "pair/trial_places.hpp"

namespace parity {

/// Where two values in a row are wrong nothing agrees with either. Of a value that is off, a module's result before it
/// is the one tensor of its shape that the port has at that place, if it has one, and that is no other's. nullopt:
/// there is none.
std::optional<PortPair> only_one_between(const TrialScene& scene, const TrialPlaces& places);

}  // namespace parity
