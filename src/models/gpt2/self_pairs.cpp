#include "models/gpt2/self_pairs.hpp"

#include <fmt/format.h>

#include <cmath>

#include "ops/own.hpp"

namespace parity {
namespace {

// The difference of each output that rounding the weights to steps makes: independent errors, uniform over a step.
SelfPair int8_pair(std::string path, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                   at::Tensor baseline) {
  const Int8Weight bytes = ops::quantise_rows(weight);
  const auto norm = x.to(at::kDouble).norm(2, {1}, /*keepdim=*/true);
  return {std::move(path), "linear", std::move(baseline), ops::own_linear(x, bytes, bias),
          norm * bytes.scale.to(at::kDouble) / std::sqrt(12.0)};
}

}  // namespace

std::vector<SelfPair> gpt2_cached_pairs(const Gpt2Model& model, const at::Tensor& ids) {
  NoProbe off;
  const int64_t tokens = ids.size(1), prompt = tokens / 2;
  const auto whole = model.forward(ids, nullptr, off);
  KvCache cache = model.cache(ids.size(0), tokens);
  std::vector<SelfPair> pairs;
  const auto add = [&](int64_t position, const at::Tensor& logits) {
    pairs.push_back({fmt::format("cached/position.{}", position), "attention", whole.select(1, position).contiguous(),
                     logits.contiguous()});
  };
  if (prompt > 0) {
    const auto first = model.forward(ids.narrow(1, 0, prompt), &cache, off);
    for (int64_t i = 0; i < prompt; ++i) add(i, first.select(1, i));
  }
  for (int64_t i = prompt; i < tokens; ++i) add(i, model.forward(ids.narrow(1, i, 1), &cache, off).select(1, 0));
  return pairs;
}

std::vector<SelfPair> gpt2_int8_pairs(const Gpt2Config& config, const WeightSource& weights, const at::Tensor& ids) {
  std::vector<SelfPair> pairs;
  Gpt2Ops ops;
  ops.outputs_first = true;
  const auto judged = [&pairs](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    const auto y = at::linear(x, weight, bias);
    pairs.push_back(int8_pair(fmt::format("int8/{}", pairs.size()), x, weight, bias, y));
    return y;
  };
  ops.linear = judged;
  ops.logits = [judged](const at::Tensor& x, const at::Tensor& weight) { return judged(x, weight, {}); };
  NoProbe off;
  Gpt2Model(config, Precision::fp32, weights, ops).forward(ids, nullptr, off);
  return pairs;
}

}  // namespace parity
