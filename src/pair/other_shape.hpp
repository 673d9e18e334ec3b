// Of a port whose values have another shape from some module on: which one is that module's result.
#pragma once
#include <optional>

#include "pair/trial_places.hpp"

namespace parity {

/// A wrong padding, a lost token or a crop gives every later value a shape that the reference has nowhere, so that
/// neither content nor trials pair them. The first such tensor stands for the first module's result without a pair that
/// it can be, by order, rank and the axes that are as they should be, if some earlier pair of that rank comes out.
/// Sizes of which one divides the other are a batch in parts, chunks, a last token: no fault. nullopt: there is none,
/// or one has been found.
std::optional<PortPair> first_of_other_shape(const TrialScene& scene, const TrialPlaces& places);

}  // namespace parity
