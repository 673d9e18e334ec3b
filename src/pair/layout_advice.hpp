// Tensors of one name whose axes stand in another order: channels last for channels first.
#pragma once
#include <ATen/ATen.h>

#include <optional>
#include <string>

#include "pair/by_content.hpp"

namespace parity {

/// The order of axes under which the candidate's tensor is the reference's, when its content leaves no doubt (distance
/// below 0.05): of four axes or more, where layouts are a matter of taste (a convolution's). Two or three axes in
/// another order are a mistake until a map says otherwise; so is the model's result. `distance`: what is left.
std::optional<Layout> layout_by_content(const NamedTensor& reference, const NamedTensor& candidate, double* distance);

/// "; if only the order of axes differs, a map rule says so (--map): conv = conv perm(0,4,1,2,3)"; "" when no order of
/// the candidate's axes gives the reference's shape. Where several do, the usual one is named: channels last, else
/// first.
std::string layout_advice(const std::string& reference_path, at::IntArrayRef reference,
                          const std::string& candidate_path, at::IntArrayRef candidate);

}  // namespace parity
