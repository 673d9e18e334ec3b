// The ops UMT5 is made of, each replaceable: our own kernels go in this way, and a test's fault.
#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <utility>

#include "ops/encoder_attention.hpp"
#include "ops/relative_position.hpp"
#include "ops/rms_norm.hpp"

namespace parity {

struct Umt5Ops {
  /// x (rows, in), weight (out, in) -> (rows, out).
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weight)> linear =
      [](const at::Tensor& x, const at::Tensor& weight) { return at::linear(x, weight); };
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weight, double eps, RmsForm, Precision)> norm =
      ops::rms_norm;
  std::function<at::Tensor(int64_t tokens, const BucketForm&, Precision)> buckets = ops::relative_position_buckets;
  /// Whose table of position biases a layer takes: its own (T5 shares the first one's).
  std::function<int64_t(int64_t layer)> table_of = [](int64_t layer) { return layer; };
  std::function<at::Tensor(const at::Tensor& bias, const at::Tensor& sees, double lowest)> padded_bias =
      ops::padded_bias;
  std::function<at::Tensor(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const ScoreForm&)> attention =
      ops::encoder_attention;
  /// The weights of the gate and of what it gates, from those of wi_0 and wi_1.
  std::function<std::pair<at::Tensor, at::Tensor>(at::Tensor wi_0, at::Tensor wi_1)> gate_and_up =
      [](at::Tensor wi_0, at::Tensor wi_1) { return std::pair(std::move(wi_0), std::move(wi_1)); };
  /// gelu_new in one op instead of its eight steps; empty: the steps.
  std::function<at::Tensor(const at::Tensor& x)> gelu{};
};

}  // namespace parity
