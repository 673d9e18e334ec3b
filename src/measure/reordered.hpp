// The right numbers in the wrong places: what the port has is the reference's value with its slices along one axis in
// another order, or with two axes exchanged.
#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace parity {

struct Reordered {
  at::Tensor value;    // the reference's, in the port's order; shape and dtype of `right`
  int64_t axis = 0;    // from 0; of two exchanged ones the first
  int64_t width = 1;   // slices that moved together: 16 for two heads of 16 features exchanged
  std::string detail;  // "slices of axis 2: 0 to 15 and 16 to 31 exchanged"
};

/// The order that `candidate` has the slices of `right` in, of equal shapes and any dtypes; integers have none. Slices
/// are told apart by eight random projections and need not be equal, only nearest; how well the order explains the
/// candidate is for the caller to measure. nullopt: none, or some slice of `right` is nearest to two of the
/// candidate's.
std::optional<Reordered> reordered(const at::Tensor& right, const at::Tensor& candidate);

}  // namespace parity
