#include "trace/rewrite.hpp"

#include <ATen/ScalarOps.h>
#include <fmt/format.h>

#include "core/error.hpp"
#include "trace/arguments.hpp"

namespace parity {

at::Tensor OpCall::tensor(std::string_view name) const {
  const auto index = argument_index(schema, name);
  return index && arguments[*index].isTensor() ? arguments[*index].toTensor() : at::Tensor();
}

c10::IValue OpCall::value(std::string_view name) const {
  const auto index = argument_index(schema, name);
  return index ? arguments[*index] : c10::IValue();
}

void OpCall::set(std::string_view name, c10::IValue value) {
  const auto index = argument_index(schema, name);
  if (!index) throw Error(fmt::format("the operator has no argument '{}'", name));
  // The kernel would refuse a number where its schema has a tensor (add.Tensor(x, 1e-5)).
  if (value.isScalar() && schema.arguments()[*index].type()->kind() == c10::TypeKind::TensorType)
    value = c10::scalar_to_tensor(value.toScalar());
  arguments[*index] = std::move(value);
}

}  // namespace parity
