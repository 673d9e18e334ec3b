#include "models/gpt2/int8.hpp"

#include <map>
#include <memory>

#include "models/own_pages.hpp"
#include "ops/own.hpp"

namespace parity {

Gpt2Ops gpt2_int8_ops() {
  using at::Tensor;
  const auto known = std::make_shared<std::map<const void*, Int8Weight>>();
  const auto bytes_of = [known](const Tensor& values) -> const Int8Weight& {
    return known->at(values.const_data_ptr());
  };
  Gpt2Ops ops;
  ops.outputs_first = true;
  ops.kept = [known](const Tensor& weight) {
    const auto bytes = ops::quantise_rows(weight, empty_in_own_pages(weight.sizes(), at::kChar));
    return (*known)[bytes.values.const_data_ptr()] = bytes, bytes.values;
  };
  ops.embedding = [bytes_of](const Tensor& w, const Tensor& ids) {
    return at::embedding(w, ids).to(at::kFloat) * bytes_of(w).scale.index({ids}).unsqueeze(-1);
  };
  ops.scale = [bytes_of](const Tensor& w) { return bytes_of(w).scale; };
  ops.linear = [bytes_of](const Tensor& x, const Tensor& w, const Tensor& b) {
    return ops::own_linear(x, bytes_of(w), b);
  };
  ops.linear_gelu = [bytes_of](const Tensor& x, const Tensor& w, const Tensor& b) {
    return ops::own_linear(x, bytes_of(w), b, ops::Activation::gelu_new);
  };
  ops.logits = [bytes_of](const Tensor& x, const Tensor& w) { return ops::own_linear(x, bytes_of(w), {}); };
  ops.attention = ops::own_causal_attention;
  ops.token_layer = ops::token_layer;
  return ops;
}

}  // namespace parity
