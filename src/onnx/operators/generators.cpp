// Operators that make tensors of nothing, or of a shape.
#include "core/error.hpp"
#include "onnx/dtypes.hpp"
#include "onnx/operator.hpp"
#include "trace/capture.hpp"

namespace parity::onnx {
namespace {

Tensors constant_node(const Call& call) {
  if (const Attribute* value = call.find("value"); value != nullptr && value->tensor.defined()) return {value->tensor};
  if (call.has("value_ints")) return {constant(call.integers("value_ints"))};
  const auto made = [](const at::Tensor& tensor) { return Tensors{tensor}; };
  at::Tensor tensor;
  unseen([&] {
    if (const Attribute* value = call.find("value_int")) tensor = at::scalar_tensor(*value->integer, at::kLong);
    if (const Attribute* value = call.find("value_float")) tensor = at::scalar_tensor(*value->number, at::kFloat);
    if (const Attribute* value = call.find("value_floats")) tensor = at::tensor(value->numbers, at::kFloat);
  });
  if (!tensor.defined()) throw Error("it holds no tensor of numbers");
  return made(tensor);
}

Tensors constant_of_shape(const Call& call) {
  at::Scalar value = 0.F;
  at::ScalarType dtype = at::kFloat;
  if (const Attribute* given = call.find("value"); given != nullptr && given->tensor.defined()) {
    if (given->tensor.numel() != 1) throw Error("its value is not one number");
    dtype = given->tensor.scalar_type();
    unseen([&] { value = given->tensor.item(); });
  }
  return {at::full(call.integers(0), value, dtype)};
}

Tensors range(const Call& call) {
  return {at::arange(call.value(0), call.value(1), call.value(2), call[0].scalar_type())};
}

Tensors eye_like(const Call& call) {
  if (call[0].dim() != 2) throw Error("its input is no matrix");
  const at::ScalarType dtype = call.has("dtype") ? dtype_of(call.integer("dtype", 0)) : call[0].scalar_type();
  const at::Tensor ones = at::ones(call[0].sizes(), dtype);
  const int64_t k = call.integer("k", 0);
  return {at::triu(at::tril(ones, k), k)};
}

constexpr LoweringRow kGeneratorRows[] = {
    {"Constant", constant_node},
    {"ConstantOfShape", constant_of_shape},
    {"Range", range},
    {"EyeLike", eye_like},
};

}  // namespace

std::span<const LoweringRow> generators() { return kGeneratorRows; }

}  // namespace parity::onnx
