// An error put into the result of one op of the fp64 program, and what it does to a later value.
#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <optional>
#include <vector>

#include "trace/program.hpp"

namespace parity {

struct Injection {
  size_t boundary;   // whose value gets the error
  int op;            // that made it
  size_t output;     // which of its outputs
  at::Tensor error;  // fp64, of the value's shape
};

/// nullopt when no op before the boundary makes its value (a leaf).
std::optional<Injection> injection_at(const Program& program, size_t boundary, const at::Tensor& error);

/// Carries each injection alone to boundary `root`, some of them in one pass of the program in fp64: `moved` is told
/// what number i changes there, non-finite elements as 0. Costs, for each, the ops after it once. An error is let go
/// when it has been carried. Throws Error as `replay`.
void carry(const Dump& dump, const Program& program, size_t root, std::vector<Injection>& injections,
           const std::function<void(size_t i, const at::Tensor& change)>& moved,
           const std::function<void(double done)>& progress);

}  // namespace parity
