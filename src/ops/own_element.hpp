// A tensor's memory as our own kernels take it: fp64, fp32, and bf16 as its bits.
#pragma once
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "core/precision.hpp"

namespace parity::ops {

/// Calls `work` with a null pointer of the type that stands for x's elements. Throws Error, naming `op`, for others.
template <class Work>
void with_element(const char* op, const at::Tensor& x, const Work& work) {
  switch (x.scalar_type()) {
    case at::kDouble:
      return work(static_cast<double*>(nullptr));
    case at::kFloat:
      return work(static_cast<float*>(nullptr));
    case at::kBFloat16:
      return work(static_cast<uint16_t*>(nullptr));
    default:
      throw Error(fmt::format("[{}] our own kernel has no {}", op, dtype_name(x.scalar_type())));
  }
}

template <class T>
T* pointer(const at::Tensor& x) {
  return x.defined() ? static_cast<T*>(x.data_ptr()) : nullptr;
}

}  // namespace parity::ops
