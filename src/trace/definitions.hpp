// What backend-only operators mean: their mathematics, written with plain ATen ops. Private to src/trace.
#pragma once
#include "trace/arguments.hpp"
#include "trace/rewrite.hpp"

namespace parity {

struct Definition {
  std::string_view op;  // recorded name
  // A kernel for the deployed dtypes exists on these: there the definition serves only where that refuses.
  bool on_cpu, on_cuda;
  Results (*compute)(const c10::FunctionSchema& schema, const torch::jit::Stack& arguments);
};

/// nullptr when the operator needs none.
const Definition* find_definition(std::string_view op);

}  // namespace parity
