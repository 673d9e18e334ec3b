// A tensor's elements copied to row-major order, whatever its strides.
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#include "types.hpp"

namespace parity::probe {

/// Bytes that are not cleared first.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : data_(new char[size]), size_(size), capacity_(size) {}
  char* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  void resize(std::size_t size) { size_ = size; }  // within the capacity

 private:
  std::unique_ptr<char[]> data_;
  std::size_t size_ = 0, capacity_ = 0;
};

struct Packed {
  Dtype dtype = f32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // only when dense in memory but not row-major (FORMAT.md)
  Buffer bytes;
};

/// Throws std::invalid_argument for what no tensor can have.
inline void check_tensor(const void* data, const Sizes& shape, const Sizes& strides) {
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] < 0) throw std::invalid_argument("parity_probe: a negative size");
  if (strides.size() != 0 && strides.size() != shape.size())
    throw std::invalid_argument("parity_probe: strides of another rank than the shape");
  if (data == nullptr && shape.elements() > 0) throw std::invalid_argument("parity_probe: a null pointer to data");
}

inline std::size_t packed_bytes(const Sizes& shape, Dtype dtype) {
  return static_cast<std::size_t>(shape.elements()) * dtype.size;
}

inline std::vector<std::int64_t> row_major(const Sizes& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0; stride *= std::max<std::int64_t>(shape[axis], 1))
    strides[axis] = stride;
  return strides;
}

// Equal up to axes of one element, whose strides mean nothing.
inline bool same_layout(const Sizes& shape, const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] != 1 && a[axis] != b[axis]) return false;
  return true;
}

// Is it row-major with its axes in another order, without gaps and overlaps?
inline bool dense(const Sizes& shape, const std::vector<std::int64_t>& strides) {
  std::vector<std::size_t> order(shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return strides[a] < strides[b]; });
  std::int64_t expected = 1;
  for (const std::size_t axis : order) {
    if (shape[axis] == 1) continue;
    if (strides[axis] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

// Copies the block under the axes from `axis` on; returns where the next one goes.
inline char* copy_strided(char* out, const char* from, const Sizes& shape, const std::vector<std::int64_t>& strides,
                          std::size_t axis, std::size_t item) {
  if (axis == shape.size()) return std::memcpy(out, from, item), out + item;
  if (axis + 1 == shape.size() && strides[axis] == 1) {
    const std::size_t bytes = static_cast<std::size_t>(shape[axis]) * item;
    return std::memcpy(out, from, bytes), out + bytes;
  }
  for (std::int64_t i = 0; i < shape[axis]; ++i)
    out = copy_strided(out, from + i * strides[axis] * static_cast<std::int64_t>(item), shape, strides, axis + 1, item);
  return out;
}

/// Copies the tensor at `data` to `bytes`, of its size; `strides` in elements, empty for row-major.
inline Packed pack(const void* data, const Sizes& shape, Dtype dtype, const Sizes& strides, Buffer bytes) {
  Packed packed;
  packed.dtype = dtype, packed.shape = shape.vector(), packed.bytes = std::move(bytes);
  if (packed.bytes.size() == 0) return packed;
  const std::vector<std::int64_t> plain = row_major(shape);
  const std::vector<std::int64_t> given = strides.size() == 0 ? plain : strides.vector();
  if (same_layout(shape, plain, given)) {
    std::memcpy(packed.bytes.data(), data, packed.bytes.size());
    return packed;
  }
  copy_strided(packed.bytes.data(), static_cast<const char*>(data), shape, given, 0, dtype.size);
  if (dense(shape, given)) packed.strides = given;
  return packed;
}

}  // namespace parity::probe
