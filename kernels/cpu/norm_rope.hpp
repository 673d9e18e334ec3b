// One row through an RMS norm, a rotation of its two halves (RoPE as Llama and gpt-oss have it), or both in one pass.
// Vectorised with Highway.
#pragma once
#include <cstdint>

namespace parity::kernels {

/// y = turn(x / sqrt(mean(x^2) + eps) * weight). bf16 is passed as its bits, computed in fp32 and rounded once.
template <class T>
struct NormRope {
  const T* x = nullptr;  // (dim)
  T* y = nullptr;        // (dim), not x
  int64_t dim = 0;
  const T* weight = nullptr;  // (dim); null: no norm
  double eps = 0;
  const T *cos = nullptr, *sin = nullptr;  // (dim / 2); null: no rotation
};

void norm_rope(const NormRope<double>& r);
void norm_rope(const NormRope<float>& r);
void norm_rope(const NormRope<uint16_t>& r);

}  // namespace parity::kernels
