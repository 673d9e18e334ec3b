// The same op with its sums taken in another order: what another right kernel might compute. Private to src/trace.
#pragma once
#include "trace/arguments.hpp"
#include "trace/rewrite.hpp"

namespace parity {

/// Products, convolutions, norms, softmax and sums with the summed axis reversed; fused attention as two products and a
/// softmax, each rounded to the tensors' own dtype (the coarsest right algorithm in use). nullopt: nothing is summed
/// here. `kernel` is the operator itself.
std::optional<Results> run_reordered(const Op& op, const c10::FunctionSchema& schema, const torch::jit::Stack& stack,
                                     const std::function<Results(const torch::jit::Stack&)>& kernel);

}  // namespace parity
