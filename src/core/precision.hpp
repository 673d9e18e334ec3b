// Precisions: in which dtypes a program runs, and what one rounding in a dtype costs.
#pragma once
#include <c10/core/ScalarType.h>

#include <string>
#include <string_view>

namespace parity {

/// How the floating dtypes of a recorded or re-implemented program are redirected.
///   recorded  as written
///   fp32      half-width floats (bf16, fp16, fp8) become fp32; fp32 and fp64 stay
///   fp64      every float becomes fp64, every complex number complex128: no rounding of the deployed path is left
enum class Precision { recorded, fp32, fp64 };

/// The dtype that `dtype` becomes under `precision`; integers and bool never change.
at::ScalarType redirect(at::ScalarType dtype, Precision precision);

/// Unit roundoff: half the gap above 1.0 (bf16 2^-8, fp16 2^-11, fp32 2^-24, fp64 2^-53); 0 for exact (integer) dtypes.
/// Complex dtypes have their component's.
double unit_roundoff(at::ScalarType dtype);

/// The least that values of `dtype` are held to: its unit roundoff, but fp64's for exact dtypes, whose errors are
/// measured in fp64 all the same.
double least_roundoff(at::ScalarType dtype);

/// PyTorch's name without "torch.": "bfloat16", "float32", "int64", "complex64", "bool", …
std::string dtype_name(at::ScalarType dtype);

/// Short name for tables: "bf16", "fp32", "fp64", "c64"; others as `dtype_name`.
std::string short_dtype_name(at::ScalarType dtype);

/// Inverse of `dtype_name` (short names too). Throws Error on an unknown name.
at::ScalarType parse_dtype(std::string_view name);

}  // namespace parity
