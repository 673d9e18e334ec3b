// The ops gpt-oss is made of, each replaceable: our own kernels go in this way, and a test's fault.
#pragma once
#include <ATen/ATen.h>

#include <functional>

#include "models/gpt_oss/yarn.hpp"
#include "ops/causal_attention.hpp"
#include "ops/fp8_rows.hpp"

namespace parity {

struct GptOssOps {
  /// x (rows, in), weight (out, in), bias (out) or undefined -> (rows, out).
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias)> linear =
      [](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
        return at::linear(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
      };
  /// Experts' weights as (experts, out, in), so that each output's are read in a row; false: as published, (in, out).
  bool outputs_first = false;
  /// One expert's product: x (rows, in), weight (in, out) or (out, in) -> (rows, out).
  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weight)> expert_product =
      [](const at::Tensor& x, const at::Tensor& weight) { return at::mm(x, weight); };
  std::function<at::Tensor(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const CausalForm&)>
      attention = ops::causal_attention;
  /// Weights of the chosen experts: all logits (rows, experts), the largest ones and whose they are (rows, k).
  std::function<at::Tensor(const at::Tensor& logits, const at::Tensor& largest, const at::Tensor& chosen)>
      expert_weights =
          [](const at::Tensor&, const at::Tensor& largest, const at::Tensor&) { return at::softmax(largest, 1); };
  std::function<at::Tensor(const Yarn&, int64_t head_dim)> frequencies = yarn_frequencies;
  std::function<double(const Yarn&)> attention_factor = yarn_attention_factor;
  /// Where the tokens stand in the cache when `before` have been written.
  std::function<int64_t(int64_t before)> cache_slot = [](int64_t before) { return before; };
  /// What attention gets of keys or values that a cache holds in fp8.
  std::function<at::Tensor(const Fp8Rows&, at::ScalarType)> widen = ops::widen_rows;
};

}  // namespace parity
