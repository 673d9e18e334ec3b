// Which of some values each of some others is.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

namespace parity {

using Permutation = std::vector<size_t>;

/// For each of `values` the index of that of `others` (as many, of one shape, fp64) which is the same and much nearer
/// than the next; none where that leaves a value, or one of the others, without.
std::optional<Permutation> permutation_by_content(const std::vector<at::Tensor>& values,
                                                  const std::vector<at::Tensor>& others);

}  // namespace parity
