// The C++ type behind a dtype, for loops over a tensor's memory. Private to src/measure.
#pragma once
#include <ATen/ATen.h>
#include <fmt/format.h>

#include "core/error.hpp"

namespace parity {

/// Calls f with a null pointer of the C++ type of `dtype`.
template <class F>
void with_type(at::ScalarType dtype, F&& f) {
  switch (dtype) {
    case at::kDouble:
      return f(static_cast<const double*>(nullptr));
    case at::kFloat:
      return f(static_cast<const float*>(nullptr));
    case at::kHalf:
      return f(static_cast<const at::Half*>(nullptr));
    case at::kBFloat16:
      return f(static_cast<const at::BFloat16*>(nullptr));
    case at::kFloat8_e4m3fn:
      return f(static_cast<const at::Float8_e4m3fn*>(nullptr));
    case at::kFloat8_e5m2:
      return f(static_cast<const at::Float8_e5m2*>(nullptr));
    case at::kLong:
      return f(static_cast<const int64_t*>(nullptr));
    case at::kInt:
      return f(static_cast<const int32_t*>(nullptr));
    case at::kShort:
      return f(static_cast<const int16_t*>(nullptr));
    case at::kChar:
      return f(static_cast<const int8_t*>(nullptr));
    case at::kByte:
      return f(static_cast<const uint8_t*>(nullptr));
    case at::kUInt16:
      return f(static_cast<const uint16_t*>(nullptr));
    case at::kUInt32:
      return f(static_cast<const uint32_t*>(nullptr));
    case at::kUInt64:
      return f(static_cast<const uint64_t*>(nullptr));
    case at::kBool:
      return f(static_cast<const bool*>(nullptr));
    default:
      throw Error(
          fmt::format("cannot compare tensors of dtype {}: convert them before comparing", c10::toString(dtype)));
  }
}

template <class T, class S>
T as(S value) {
  if constexpr (std::is_arithmetic_v<S>)
    return static_cast<T>(value);
  else
    return static_cast<T>(static_cast<float>(value));  // the narrow floats are exact in fp32
}

}  // namespace parity
