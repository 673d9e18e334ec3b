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

std::vector<int64_t> row_major_strides(at::IntArrayRef shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0; stride *= std::max<int64_t>(shape[axis], 1)) strides[axis] = stride;
  return strides;
}

bool lie_apart(at::IntArrayRef shape, at::IntArrayRef strides) {
  std::vector<size_t> order(shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  int64_t reach = 1;
  for (const size_t axis : order) {
    if (shape[axis] == 1) continue;
    int64_t step = 0;  // strides may come out of a file
    if (strides[axis] < reach || __builtin_mul_overflow(shape[axis] - 1, strides[axis], &step) ||
        __builtin_add_overflow(reach, step, &reach))
      return false;
  }
  return true;
}

bool can_be_laid_out(at::IntArrayRef shape, at::IntArrayRef strides) {
  if (shape.size() != strides.size() || std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s < 0; }))
    return false;
  std::vector<int64_t> own = shape.vec();
  for (size_t axis = 0; axis < own.size(); ++axis)
    if (strides[axis] == 0) own[axis] = 1;
  return lie_apart(own, strides) &&
         (elements_spanned(own, strides) + kMostSpread - 1) / kMostSpread <= c10::multiply_integers(own);
}

at::Tensor laid_out(const at::Tensor& tensor, at::IntArrayRef strides, int64_t misalignment) {
  at::Tensor own = tensor;
  for (int64_t axis = 0; axis < tensor.dim(); ++axis)
    if (strides[axis] == 0) own = own.narrow(axis, 0, 1);
  return empty_at(misalignment, own.sizes(), strides, tensor.scalar_type())
      .copy_(own)
      .as_strided(tensor.sizes(), strides);
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
  if (lie_apart(like.sizes(), like.strides()))
    return empty_at(misalignment(like), like.sizes(), like.strides(), like.scalar_type()).copy_(tensor);
  const at::Tensor rows = at::empty(like.sizes(), like.options()).copy_(tensor);
  if (!can_be_laid_out(like.sizes(), like.strides())) return rows;
  const at::Tensor shared = laid_out(rows, like.strides(), misalignment(like));
  return at::equal(shared, rows) ? shared : rows;
}

}  // namespace parity
