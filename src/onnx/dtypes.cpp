#include "onnx/dtypes.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace parity::onnx {
namespace {

struct DtypeRow {
  int64_t type;  // onnx/onnx.proto, TensorProto.DataType
  at::ScalarType dtype;
};

constexpr DtypeRow kDtypes[] = {
    {1, at::kFloat},   {2, at::kByte},    {3, at::kChar},      {4, at::kUInt16},         {5, at::kShort},
    {6, at::kInt},     {7, at::kLong},    {9, at::kBool},      {10, at::kHalf},          {11, at::kDouble},
    {12, at::kUInt32}, {13, at::kUInt64}, {16, at::kBFloat16}, {17, at::kFloat8_e4m3fn}, {19, at::kFloat8_e5m2},
};

}  // namespace

at::ScalarType dtype_of(int64_t type) {
  for (const DtypeRow& row : kDtypes)
    if (row.type == type) return row.dtype;
  throw Error(fmt::format("ONNX's element type {} is not known here", type));
}

}  // namespace parity::onnx
