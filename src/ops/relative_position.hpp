// T5's relative positions: the distance from query to key, in buckets that are exact near by and logarithmic farther
// on.
#pragma once
#include <ATen/ATen.h>

#include "core/precision.hpp"
#include "ops/op.hpp"

namespace parity {

/// Sizes of a bidirectional encoder's buckets. Half of them are for keys behind the query; of each half, half are
/// exact.
struct BucketForm {
  int64_t buckets = 32;        // even, at least 4
  int64_t max_distance = 128;  // from here on all keys share the last bucket; more than buckets / 4
};

namespace ops {

/// (tokens, tokens) int64: row query, column key. The logarithm is taken in fp32 and cut off, as transformers does
/// (modeling_umt5.py, _relative_position_bucket); in fp64 under Precision::fp64.
at::Tensor relative_position_buckets(int64_t tokens, const BucketForm& form, Precision precision);

/// table (buckets, heads), buckets (tokens, tokens) -> (tokens, tokens, heads).
at::Tensor relative_position_bias(const at::Tensor& table, const at::Tensor& buckets);

/// bias (1, heads, tokens, keys), sees (batch, 1, 1, keys) bool -> (batch, heads, tokens, keys): `lowest` where a key
/// is padding.
at::Tensor padded_bias(const at::Tensor& bias, const at::Tensor& sees, double lowest);

}  // namespace ops

const OpRow& relative_position_row();

}  // namespace parity
