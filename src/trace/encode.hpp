// What the boxed dispatcher takes and gives -> the arguments of a recorded op (FORMAT.md, "Arguments"): the inverse of
// trace/arguments.hpp.
#pragma once
#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

#include <functional>
#include <nlohmann/json.hpp>

namespace parity {

/// {"v", "d", "s"}, as results and inputs of calls are recorded; not stored.
nlohmann::json encode_value(int64_t id, const at::Tensor& tensor);

/// A double, also one that JSON has no number for.
nlohmann::json encode_number(double number);

/// `args` and `kwargs` of an op called with these, arguments left out that have the schema's default. `id_of` gives a
/// tensor's id. Throws Error for an argument that recordings cannot hold (a generator that draws, a custom class).
struct EncodedArguments {
  nlohmann::json args = nlohmann::json::array(), kwargs = nlohmann::json::object();
};
EncodedArguments encode_arguments(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments,
                                  const std::function<int64_t(const at::Tensor&)>& id_of);

}  // namespace parity
