// What sort of numbers a dtype holds.
#pragma once
#include <c10/core/ScalarType.h>

namespace parity {

/// bf16 or fp16.
inline bool is_half(at::ScalarType dtype) { return dtype == at::kBFloat16 || dtype == at::kHalf; }

/// Real or complex floating point.
inline bool is_float(at::ScalarType dtype) { return at::isFloatingType(dtype) || at::isComplexType(dtype); }

/// fp64, real or complex.
inline bool is_double(at::ScalarType dtype) { return dtype == at::kDouble || dtype == at::kComplexDouble; }

/// 0 bool, 1 integer, 2 real, 3 complex: values of two classes are not to be compared.
inline int dtype_class(at::ScalarType dtype) {
  if (dtype == at::kBool) return 0;
  if (at::isComplexType(dtype)) return 3;
  return at::isFloatingType(dtype) ? 2 : 1;
}

}  // namespace parity
