#include "dump/placement.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <numeric>

namespace parity {

int64_t misalignment(const at::Tensor& tensor) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % kAlignment);
}

int64_t elements_spanned(at::IntArrayRef shape, at::IntArrayRef strides) {
  int64_t last = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 0) return 0;
    last += (shape[axis] - 1) * strides[axis];
  }
  return last + 1;
}

bool lie_apart(at::IntArrayRef shape, at::IntArrayRef strides) {
  std::vector<size_t> order(shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  int64_t reach = 1;
  for (const size_t axis : order) {
    if (shape[axis] == 1) continue;
    if (strides[axis] < reach) return false;
    reach += (shape[axis] - 1) * strides[axis];
  }
  return true;
}

at::Tensor empty_at(int64_t bytes, at::IntArrayRef shape, at::IntArrayRef strides, at::ScalarType dtype) {
  const int64_t span = elements_spanned(shape, strides);
  const bool dense = span == c10::multiply_integers(shape);
  if (bytes == 0 && dense) return at::empty_strided(shape, strides, dtype);
  const size_t size = static_cast<size_t>(bytes + kAlignment) + static_cast<size_t>(span) * at::elementSize(dtype);
  void* block = dense ? std::malloc(size) : std::calloc(size, 1);  // of large gaps no page is ever touched
  if (block == nullptr) throw std::bad_alloc();
  const auto begin = (reinterpret_cast<uintptr_t>(block) + kAlignment - 1) / kAlignment * kAlignment + bytes;
  return at::from_blob(
      reinterpret_cast<void*>(begin), shape, strides, [block](void*) { std::free(block); }, dtype);
}

at::Tensor placed_like(const at::Tensor& tensor, const at::Tensor& like) {
  if (tensor.scalar_type() == like.scalar_type() && tensor.strides() == like.strides() &&
      misalignment(tensor) == misalignment(like))
    return tensor;
  if (!lie_apart(like.sizes(), like.strides())) return at::empty(like.sizes(), like.options()).copy_(tensor);
  return empty_at(misalignment(like), like.sizes(), like.strides(), like.scalar_type()).copy_(tensor);
}

}  // namespace parity
