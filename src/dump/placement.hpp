// Where a tensor lies in memory, as far as it decides bits: matrix kernels sum in another order when rows begin at
// another address modulo 64. Measured (MKL in LibTorch 2.13, AVX-512): addmm of (1, 256) by (256, 40) in fp32 gives 33
// of 40 results other bits for a weight at 0 than for the same weight at 8 bytes modulo 16, where safetensors files put
// theirs.
#pragma once
#include <ATen/ATen.h>

namespace parity {

constexpr int64_t kAlignment = 64;  // of LibTorch's own allocations, in bytes

/// Bytes that the tensor's first element lies beyond a multiple of kAlignment.
int64_t misalignment(const at::Tensor& tensor);

/// An uninitialised dense tensor whose storage begins `bytes` (< kAlignment, a multiple of the element's alignment)
/// beyond a multiple of kAlignment.
at::Tensor empty_at(int64_t bytes, at::IntArrayRef shape, at::IntArrayRef strides, at::ScalarType dtype);

/// The values of `tensor` in the dtype, strides and placement of `like`.
at::Tensor placed_like(const at::Tensor& tensor, const at::Tensor& like);

}  // namespace parity
