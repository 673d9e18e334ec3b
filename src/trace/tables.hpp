// Tables that a model computes when it is built: rotary frequencies, sines of positions, filters. No weights file holds
// them, so each port computes its own, with other last bits. Private to src/trace.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace parity {

/// `table` as another correct implementation may have it, same dtype, shape and strides; itself where it is not of
/// floats. Each value moves by at most two roundings of fp32 (of fp64 in an fp64 table) and is rounded to the table's
/// dtype; sines and cosines (two axes or more, nothing above 1) by a quarter as many roundings as the longest axis has
/// places, because their angles are as large and carry relative roundings. Values of few significant bits (masks, ones,
/// powers of two, small integers) are exact everywhere and stay. One `draw`, one result.
at::Tensor computed_anew(const at::Tensor& table, uint64_t draw);

}  // namespace parity
