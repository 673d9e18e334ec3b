// Where a tensor lies in memory, as far as it decides bits: matrix kernels sum in another order when rows begin at
// another address modulo 64. Measured (MKL in LibTorch 2.13, AVX-512): addmm of (1, 256) by (256, 40) in fp32 gives 33
// of 40 results other bits for a weight at 0 than for the same weight at 8 bytes modulo 16, where safetensors files put
// theirs.
#pragma once
#include <ATen/ATen.h>

namespace parity {

constexpr int64_t kAlignment = 64;   // of LibTorch's own allocations, in bytes
constexpr int64_t kMostSpread = 64;  // FORMAT.md: a layout is kept when it takes at most so many times its elements

/// Bytes that the tensor's first element lies beyond a multiple of kAlignment.
int64_t misalignment(const at::Tensor& tensor);

/// Elements of memory from a tensor's first to its last one, gaps included; 0 when it has none. Strides must not be
/// negative.
int64_t elements_spanned(at::IntArrayRef shape, at::IntArrayRef strides);

/// The strides that a tensor of this shape has when nobody asks for others.
std::vector<int64_t> row_major_strides(at::IntArrayRef shape);

/// Does each element lie at an address of its own? Gaps between them are fine (x[:, ::2]). False also for the rare
/// interleaved layouts in which one axis reaches past a step of a slower one.
bool lie_apart(at::IntArrayRef shape, at::IntArrayRef strides);

/// Can values be laid out so (FORMAT.md, `loose_strides`)? Elements lie apart, but for those along axes of stride 0,
/// which share their memory; none is farther than kMostSpread allows.
bool can_be_laid_out(at::IntArrayRef shape, at::IntArrayRef strides);

/// The values of `tensor` at such strides; of those that share memory the first along each axis counts.
at::Tensor laid_out(const at::Tensor& tensor, at::IntArrayRef strides, int64_t misalignment);

/// A tensor whose elements lie apart and whose storage begins `bytes` (< kAlignment, a multiple of the element's
/// alignment) beyond a multiple of kAlignment. Its elements are uninitialised, gaps between them zero.
at::Tensor empty_at(int64_t bytes, at::IntArrayRef shape, at::IntArrayRef strides, at::ScalarType dtype);

/// The values of `tensor` in the dtype, strides and placement of `like`; row-major where elements of `like` share
/// memory and these values differ.
at::Tensor placed_like(const at::Tensor& tensor, const at::Tensor& like);

}  // namespace parity
