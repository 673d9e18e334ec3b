// What one op computes instead: seeded faults and other cast placements, for runs that deviate from the recorded
// program.
#pragma once
#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

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
  torch::jit::Stack arguments;                                 // in schema order; change them and call `run`
  std::function<Results(const torch::jit::Stack&)> run;        // rounded to the replay's dtypes
  std::function<Results(const torch::jit::Stack&)> unrounded;  // Arithmetic::exact only: in fp64, not rounded

  std::function<at::Tensor(int64_t)> leaf;  // any leaf of the program (another weight), in the replay's dtype

  /// The tensor argument called `name`; undefined when there is none.
  at::Tensor tensor(std::string_view name) const;
  /// Sets the argument called `name`. Throws Error when the operator has none.
  void set(std::string_view name, c10::IValue value);
  /// A number, list or flag called `name`; None when there is none.
  c10::IValue value(std::string_view name) const;
  Results run_again() const { return run(arguments); }
};

using Rewrite = std::function<Results(OpCall&)>;

/// Ops that compute something else. A rewrite that throws, or whose result later ops refuse, ends its deviation
/// silently: that fault is impossible here. Other shapes on the way are fine; at a boundary such a value is left out.
struct Deviation {
  size_t lane = 0;                  // number of the replay that it runs beside
  bool own_kernels = false;         // beside the recorded kernels: computed by them too, not in fp64 and rounded
  std::map<int, Rewrite> rewrites;  // by index into Program::ops
};

}  // namespace parity
