// Numbers of a tensor that no permutation of its elements changes and rounding hardly: which tensors may hold the same.
#pragma once
#include <ATen/ATen.h>

#include <array>

namespace parity {

struct Signature {
  int64_t count = 0, nonfinite = 0;  // elements; NaN and Inf are left out of the rest
  std::array<double, 4> power{};     // sums of x, x^2, x^3, x^4
  double least = 0, greatest = 0;    // of the finite elements
  bool constant() const { return nonfinite == 0 && least == greatest; }  // a single element is constant too
};

/// One pass over the tensor's memory on all threads; the same digits for any number of them. Elements of complex
/// tensors count as two.
Signature signature_of(const at::Tensor& tensor);

/// Could both hold the same numbers in any order, one of them rounded to bf16? A roundoff u moves sum x^k by a random
/// k u sqrt(sum x^2k); eight times that is allowed. Two unrelated tensors of n elements agree in all four sums with a
/// probability of about (u)^4 or less.
bool may_hold_the_same(const Signature& a, const Signature& b);

/// How far sum x^2 of such a pair may lie apart, relative to it: for searching in sorted lists.
double most_square_change(const Signature& a);

}  // namespace parity
