// Constants, or an order of channels, that a port has folded into its weights.
#pragma once
#include <ATen/ATen.h>

#include <string>

namespace parity {

/// What a port has in the place of the reference's value, when its weights alone make the difference: "the reference's
/// divided by 0.2887" (attention's scale in the query's), "the reference's without a factor and an offset a channel" (a
/// norm's weight and bias, along the last axis or axis 1, in the product behind it), or "the reference's with slices of
/// axis 2 in another order, 40 of 48 elsewhere" (rotated pairs side by side). "" for anything else, and where too few
/// elements say so.
std::string folded_in_weights(const at::Tensor& reference, const at::Tensor& candidate);

/// Relative L2 up to which a value of that dtype agrees with a fold. Not MovedLimits::far: a tanh of small values is a
/// factor, too, within a few per cent.
double folded_limit(at::ScalarType dtype);

}  // namespace parity
