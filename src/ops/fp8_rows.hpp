// Rows in fp8 (e4m3: four bits of exponent, three of mantissa, largest value 448) with a scale each: how a cache of
// keys and values is halved.
#pragma once
#include <ATen/ATen.h>

#include "ops/op.hpp"

namespace parity {

struct Fp8Rows {
  at::Tensor values;  // (..., dim) float8_e4m3fn
  at::Tensor scale;   // (..., 1) fp32: row = values * scale
};

namespace ops {

/// The largest magnitude of a row becomes 448, the rest goes to the nearest. x: (..., dim), any float.
Fp8Rows fp8_rows(const at::Tensor& x);

/// values * scale, formed in fp32 or wider, in `dtype`.
at::Tensor widen_rows(const Fp8Rows& rows, at::ScalarType dtype);

/// How far apart the neighbours of each value are, fp64, scale included: an element is at most half of that off.
at::Tensor fp8_steps(const Fp8Rows& rows);

}  // namespace ops

const OpRow& fp8_rows_row();

}  // namespace parity
