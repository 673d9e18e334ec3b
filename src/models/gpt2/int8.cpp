#include "models/gpt2/int8.hpp"

#include <map>
#include <memory>

#include "ops/own.hpp"

namespace parity {

Gpt2Ops gpt2_int8_ops() {
  const auto known = std::make_shared<std::map<const void*, Int8Weight>>();
  const auto bytes_of = [known](const at::Tensor& weight) -> const Int8Weight& {
    const auto found = known->find(weight.const_data_ptr());
    if (found != known->end()) return found->second;
    return known->emplace(weight.const_data_ptr(), ops::quantise_rows(weight)).first->second;
  };
  using at::Tensor;
  Gpt2Ops ops;
  ops.outputs_first = true;
  ops.linear = [bytes_of](const Tensor& x, const Tensor& w, const Tensor& b) {
    return ops::own_linear(x, bytes_of(w), b);
  };
  ops.linear_gelu = [bytes_of](const Tensor& x, const Tensor& w, const Tensor& b) {
    return ops::own_linear(x, bytes_of(w), b, ops::Activation::gelu_new);
  };
  ops.logits = [bytes_of](const Tensor& x, const Tensor& w) { return ops::own_linear(x, bytes_of(w), {}); };
  ops.attention = ops::own_causal_attention;
  return ops;
}

}  // namespace parity
