#include "dump/placement.hpp"

#include <cstdlib>
#include <new>

namespace parity {

int64_t misalignment(const at::Tensor& tensor) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % kAlignment);
}

at::Tensor empty_at(int64_t bytes, at::IntArrayRef shape, at::IntArrayRef strides, at::ScalarType dtype) {
  if (bytes == 0) return at::empty_strided(shape, strides, dtype);
  size_t size = at::elementSize(dtype) + bytes;
  for (size_t i = 0; i < shape.size(); ++i)
    size += std::max<int64_t>(shape[i] - 1, 0) * strides[i] * at::elementSize(dtype);
  void* block = std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
  if (block == nullptr) throw std::bad_alloc();
  return at::from_blob(
      static_cast<char*>(block) + bytes, shape, strides, [block](void*) { std::free(block); }, dtype);
}

at::Tensor placed_like(const at::Tensor& tensor, const at::Tensor& like) {
  if (tensor.scalar_type() == like.scalar_type() && tensor.strides() == like.strides() &&
      misalignment(tensor) == misalignment(like))
    return tensor;
  if (!like.is_non_overlapping_and_dense()) return at::empty_like(like).copy_(tensor);
  return empty_at(misalignment(like), like.sizes(), like.strides(), like.scalar_type()).copy_(tensor);
}

}  // namespace parity
