// Recorded arguments -> what the boxed dispatcher takes.
#pragma once
#include <ATen/core/stack.h>

#include <functional>

#include "core/precision.hpp"
#include "trace/operator.hpp"
#include "trace/program.hpp"

namespace parity {

using ValueLookup = std::function<at::Tensor(int64_t id)>;

/// The operator's arguments in schema order: given ones by position and name, the rest from the schema's defaults.
/// A device becomes the replay's (trace/device.hpp), also where a factory was given none; dtype arguments are
/// redirected. Throws Error ("argument 'dim': …") when one does not fit.
torch::jit::Stack read_arguments(const Op& op, const c10::FunctionSchema& schema, Precision precision,
                                 const ValueLookup& lookup);

/// The results as the recorder flattened them: tuples and lists opened, nullopt for what is not a tensor.
std::vector<std::optional<at::Tensor>> flatten_results(const torch::jit::Stack& results);

/// Position of the argument called `name`, or nullopt.
std::optional<size_t> argument_index(const c10::FunctionSchema& schema, std::string_view name);

}  // namespace parity
