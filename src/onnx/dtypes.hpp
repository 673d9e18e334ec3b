// ONNX's element types.
#pragma once
#include <c10/core/ScalarType.h>

#include <cstdint>

namespace parity::onnx {

/// ATen's dtype for a TensorProto::DataType. Throws Error ("ONNX's element type 12 is not known here").
at::ScalarType dtype_of(int64_t type);

}  // namespace parity::onnx
