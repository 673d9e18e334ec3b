// What GPT-2 has twice: the forward with a cache and without, linear layers with INT8 weights and without.
#pragma once
#include "models/gpt2/model.hpp"
#include "models/model.hpp"

namespace parity {

/// Logits of each position of `ids` (batch, tokens): token by token on the cache, after a first half at once, against
/// all at once. "cached/position.3".
std::vector<SelfPair> gpt2_cached_pairs(const Gpt2Model& model, const at::Tensor& ids);

/// Every linear layer on the inputs that it gets in a forward of `ids` in fp32, with weights in signed bytes, one step
/// an output: "int8/0" … in execution order, the output layer last. `weights` as Gpt2Model has them.
std::vector<SelfPair> gpt2_int8_pairs(const Gpt2Config& config, const WeightSource& weights, const at::Tensor& ids);

}  // namespace parity
