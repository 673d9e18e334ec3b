// What one op computes instead: seeded faults and other cast placements, for runs that deviate from the recorded program.
#pragma once
#include <ATen/core/stack.h>
#include <ATen/core/function_schema.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trace/program.hpp"

namespace parity {

using Results = std::vector<std::optional<at::Tensor>>;  // as the op's outputs, tuples and lists opened up

/// One call of an op that may be changed.
struct OpCall {
  const Op& op;
  const c10::FunctionSchema& schema;
  torch::jit::Stack arguments;  // in schema order; change them and call `run`
  std::function<Results(const torch::jit::Stack&)> run;

  /// The tensor argument called `name`; undefined when there is none.
  at::Tensor tensor(std::string_view name) const;
  /// Sets the argument called `name`. Throws Error when the operator has none.
  void set(std::string_view name, c10::IValue value);
  Results run_again() const { return run(arguments); }
};

using Rewrite = std::function<Results(OpCall&)>;

/// Ops that compute something else. A rewrite that throws or gives another shape ends its deviation silently: that
/// fault is impossible here.
struct Deviation {
  std::map<int, Rewrite> rewrites;  // by index into Program::ops
};

}  // namespace parity
