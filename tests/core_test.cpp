#include <doctest/doctest.h>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "trace/machine.hpp"

using namespace parity;

TEST_CASE("precision: half-width floats rise to fp32, everything floating to fp64, integers stay") {
  CHECK(dtype_name(redirect(at::kBFloat16, Precision::recorded)) == dtype_name(at::kBFloat16));
  CHECK(dtype_name(redirect(at::kBFloat16, Precision::fp32)) == dtype_name(at::kFloat));
  CHECK(dtype_name(redirect(at::kDouble, Precision::fp32)) == dtype_name(at::kDouble));
  CHECK(dtype_name(redirect(at::kComplexFloat, Precision::fp32)) == dtype_name(at::kComplexFloat));
  CHECK(dtype_name(redirect(at::kComplexFloat, Precision::fp64)) == dtype_name(at::kComplexDouble));
  CHECK(dtype_name(redirect(at::kLong, Precision::fp64)) == dtype_name(at::kLong));
}

TEST_CASE("precision: names go both ways and unknown ones are an error") {
  for (const auto* name : {"float64", "bfloat16", "complex64", "bool", "float8_e4m3fn"})
    CHECK(dtype_name(parse_dtype(name)) == name);
  CHECK(dtype_name(parse_dtype("bf16")) == dtype_name(at::kBFloat16));
  CHECK_THROWS_AS(parse_dtype("float17"), Error);
}

TEST_CASE("precision: unit roundoff is what one rounding of 1 + u to even loses") {
  for (const auto dtype : {at::kBFloat16, at::kHalf, at::kFloat}) {
    const double u = unit_roundoff(dtype);
    CHECK(at::scalar_tensor(1 + u, at::kDouble).to(dtype).item<double>() == 1.0);
    CHECK(at::scalar_tensor(1 + 1.01 * u, at::kDouble).to(dtype).item<double>() == 1 + 2 * u);
  }
}

TEST_CASE("machine: capability and threads are known") {
  CHECK_FALSE(this_machine().cpu_capability.empty());
  CHECK(this_machine().threads >= 1);
}
