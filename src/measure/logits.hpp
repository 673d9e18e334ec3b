// Logits as distributions: Kullback-Leibler divergence, the most likely words and whether a flip of them is a tie.
#pragma once
#include <ATen/ATen.h>

#include "core/logits.hpp"

namespace parity {

/// reference, candidate: (..., words), floating, of one shape; the words are the last axis. A flip counts beyond the
/// margin when the reference's first word leads its second by more than 2 ULP (of the reference's dtype) and 2 rms
/// errors of that token's logits. Throws Error for other shapes, other dtypes or a single word.
LogitStats measure_logits(const at::Tensor& reference, const at::Tensor& candidate);

}  // namespace parity
