#include "core/precision.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace parity {
namespace {

struct DtypeRow {
  at::ScalarType dtype;
  std::string_view name, short_name;
  double unit_roundoff;
  at::ScalarType as_fp32, as_fp64;
};

// One row a dtype. Unit roundoff 2^-p, p = bits of the significand with the hidden one.
constexpr std::array kDtypes{
    DtypeRow{at::kDouble, "float64", "fp64", 0x1p-53, at::kDouble, at::kDouble},
    DtypeRow{at::kFloat, "float32", "fp32", 0x1p-24, at::kFloat, at::kDouble},
    DtypeRow{at::kHalf, "float16", "fp16", 0x1p-11, at::kFloat, at::kDouble},
    DtypeRow{at::kBFloat16, "bfloat16", "bf16", 0x1p-8, at::kFloat, at::kDouble},
    DtypeRow{at::kFloat8_e4m3fn, "float8_e4m3fn", "fp8_e4m3", 0x1p-4, at::kFloat, at::kDouble},
    DtypeRow{at::kFloat8_e5m2, "float8_e5m2", "fp8_e5m2", 0x1p-3, at::kFloat, at::kDouble},
    DtypeRow{at::kComplexDouble, "complex128", "c128", 0x1p-53, at::kComplexDouble, at::kComplexDouble},
    DtypeRow{at::kComplexFloat, "complex64", "c64", 0x1p-24, at::kComplexFloat, at::kComplexDouble},
    DtypeRow{at::kComplexHalf, "complex32", "c32", 0x1p-11, at::kComplexFloat, at::kComplexDouble},
    DtypeRow{at::kLong, "int64", "int64", 0, at::kLong, at::kLong},
    DtypeRow{at::kInt, "int32", "int32", 0, at::kInt, at::kInt},
    DtypeRow{at::kShort, "int16", "int16", 0, at::kShort, at::kShort},
    DtypeRow{at::kChar, "int8", "int8", 0, at::kChar, at::kChar},
    DtypeRow{at::kByte, "uint8", "uint8", 0, at::kByte, at::kByte},
    DtypeRow{at::kUInt16, "uint16", "uint16", 0, at::kUInt16, at::kUInt16},
    DtypeRow{at::kUInt32, "uint32", "uint32", 0, at::kUInt32, at::kUInt32},
    DtypeRow{at::kUInt64, "uint64", "uint64", 0, at::kUInt64, at::kUInt64},
    DtypeRow{at::kBool, "bool", "bool", 0, at::kBool, at::kBool},
};

const DtypeRow& row(at::ScalarType dtype) {
  for (const DtypeRow& r : kDtypes)
    if (r.dtype == dtype) return r;
  throw Error(fmt::format("dtype {} is not supported; convert the tensor before recording it", c10::toString(dtype)));
}

}  // namespace

at::ScalarType redirect(at::ScalarType dtype, Precision precision) {
  if (precision == Precision::recorded) return dtype;
  const DtypeRow& r = row(dtype);
  return precision == Precision::fp32 ? r.as_fp32 : r.as_fp64;
}

double unit_roundoff(at::ScalarType dtype) { return row(dtype).unit_roundoff; }
double least_roundoff(at::ScalarType dtype) { return std::max(unit_roundoff(dtype), unit_roundoff(at::kDouble)); }
std::string dtype_name(at::ScalarType dtype) { return std::string(row(dtype).name); }
std::string short_dtype_name(at::ScalarType dtype) { return std::string(row(dtype).short_name); }

at::ScalarType parse_dtype(std::string_view name) {
  for (const DtypeRow& r : kDtypes)
    if (r.name == name || r.short_name == name) return r.dtype;
  throw Error(
      fmt::format("unknown dtype '{}' (known: float64, float32, float16, bfloat16, complex64, int64, …)", name));
}

}  // namespace parity
