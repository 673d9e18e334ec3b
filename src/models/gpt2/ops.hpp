// The ops GPT-2 is made of, each replaceable: our own kernels go in this way, and a test's fault.
#pragma once
#include <ATen/ATen.h>

#include <functional>

#include "ops/causal_attention.hpp"
#include "ops/token_layer.hpp"

namespace parity {

struct Gpt2Ops {
  using Linear = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias)>;

  /// Weights of linear layers as (out, in), so that each output's are read in a row; false: as published, (in, out).
  bool outputs_first = false;
  /// x (rows, in), bias (out) -> (rows, out).
  Linear linear = [](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    return at::addmm(bias, x, weight);
  };
  /// The same with gelu_new behind it, for when nobody looks in between; empty: in two steps.
  Linear linear_gelu{};
  /// x (rows, in), weight (out, in) -> (rows, out).
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weight)> logits =
      [](const at::Tensor& x, const at::Tensor& weight) { return at::linear(x, weight); };
  std::function<at::Tensor(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const CausalForm&)>
      attention = ops::causal_attention;
  /// A weight of a linear layer or the embedding as it is kept, contiguous, of (out, in) and any strides, or (in, out)
  /// without outputs_first; the products above and the two below get it.
  std::function<at::Tensor(const at::Tensor& weight)> kept = [](const at::Tensor& weight) {
    return weight.contiguous();
  };
  /// Rows of the embedding (out, in) by ids.
  std::function<at::Tensor(const at::Tensor& weight, const at::Tensor& ids)> embedding =
      [](const at::Tensor& weight, const at::Tensor& ids) { return at::embedding(weight, ids); };
  /// The step of each output of a kept weight, undefined where it has none.
  std::function<at::Tensor(const at::Tensor& weight)> scale = [](const at::Tensor&) { return at::Tensor(); };
  /// A layer for one token in one pass, for when nobody looks in between; empty: op by op.
  std::function<void(const at::Tensor& x, const TokenLayer& layer, const TokenRows& rows)> token_layer{};
  /// What many rows are given to when nobody looks; empty: as above.
  Linear prompt_linear{};
  std::function<at::Tensor(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const CausalForm&)>
      prompt_attention{};
  /// Where the tokens stand in the cache when `before` have been written.
  std::function<int64_t(int64_t before)> cache_slot = [](int64_t before) { return before; };
};

}  // namespace parity
