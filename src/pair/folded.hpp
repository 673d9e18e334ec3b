// A constant that a port has folded into the weights of another op.
#pragma once
#include <ATen/ATen.h>

#include <string>

namespace parity {

/// What a port has in the place of the reference's value, when constants alone are between them: "the reference's
/// divided by 0.2887" (attention's scale in the query's weights), or "the reference's without a factor and an offset a
/// channel" (a norm's weight and bias, along the last axis or axis 1, in the product behind it). "" for anything else,
/// and where too few elements say so.
std::string folded_constant(const at::Tensor& reference, const at::Tensor& candidate);

}  // namespace parity
