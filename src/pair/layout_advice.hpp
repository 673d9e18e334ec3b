// Tensors of one name and another shape: axes in another order (channels last for channels first) or merged.
#pragma once
#include <ATen/ATen.h>

#include <optional>
#include <string>
#include <vector>

#include "pair/by_content.hpp"

namespace parity {

/// Is one shape the other with neighbouring axes merged, lengths of 1 aside? Then the elements lie in the same order.
bool differ_by_merged_axes(at::IntArrayRef a, at::IntArrayRef b);

/// `shape` with its axes in that order.
std::vector<int64_t> shape_after(at::IntArrayRef shape, const std::vector<int64_t>& order);

/// The orders of two axes or more that ports have: channels last read as channels first, the other way, tokens and
/// heads exchanged, the last two exchanged.
std::vector<std::vector<int64_t>> usual_orders(size_t axes);

/// The order or the merging of axes (heads and their features) under which the candidate's tensor is the reference's,
/// when its content leaves no doubt (distance below 0.05): of four axes or more on either side, where layouts are a
/// matter of taste (a convolution's). Two or three axes in another order are a mistake until a map says otherwise; so
/// is the model's result. `distance`: what is left.
std::optional<Layout> layout_by_content(const NamedTensor& reference, const NamedTensor& candidate, double* distance);

/// The same order of axes as another tensor of the candidate has (empty: as they are); nullopt where the shapes do not
/// agree then.
std::optional<Layout> layout_like(const std::vector<int64_t>& permutation, at::IntArrayRef reference,
                                  at::IntArrayRef candidate);

/// The last row of the candidate's tensor, along the one axis, not the last, that the reference has a single row of: a
/// reference that generates has the last token's logits alone. nullopt for other shapes.
std::optional<Layout> last_row(at::IntArrayRef reference, at::IntArrayRef candidate);

/// What may be between tensors of other shapes.
struct ShapeAdvice {
  std::string text;   // "; if only the order of axes differs, use a map rule (--map): conv = conv perm(0,4,1,2,3)"
  std::string steps;  // of that rule, "perm(0,4,1,2,3)"
};

/// An order of axes (of several the usual one: channels last, else first); of merged axes a reshape(…); of a tensor
/// that is longer along one axis and begins or ends with the reference's values (relative L2 below .05), as a padded
/// vocabulary or sequence does, a slice(…). One that is shorter has no rule, but is said to have the reference's first
/// or last. Empty when it is none of these, or a side is undefined.
ShapeAdvice shape_advice(const std::string& reference_path, const at::Tensor& reference,
                         const std::string& candidate_path, const at::Tensor& candidate);

}  // namespace parity
