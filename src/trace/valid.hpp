// The same op by another valid arithmetic: what another library or machine might compute with the same casts. Private
// to src/trace. One table a sort of op: valid_products.cpp, valid_norms.cpp, valid_attention.cpp,
// valid_images.cpp.
#pragma once
#include <span>

#include "trace/arguments.hpp"
#include "trace/replay.hpp"
#include "trace/rewrite.hpp"

namespace parity {

using Kernel = std::function<Results(const torch::jit::Stack&)>;

/// One call of an op that is to be computed otherwise.
struct ValidCall {
  const Op& op;
  const c10::FunctionSchema& schema;
  torch::jit::Stack stack;  // a copy, changed before the kernel is called
  Arithmetic arithmetic;
  const Kernel& kernel;  // the operator itself

  c10::IValue* find(std::string_view name);
  /// Undefined when there is none of that name.
  at::Tensor tensor(std::string_view name);
  double number(std::string_view name, double otherwise);
  void flip(std::string_view name, int64_t axis);
};

/// An op and how it is computed under an arithmetic; nullopt: not otherwise than by its kernel.
struct ValidForm {
  std::string_view op;
  std::optional<Results> (*run)(ValidCall call);
};
std::span<const ValidForm> valid_products();
std::span<const ValidForm> valid_norms();
std::span<const ValidForm> valid_attention();
std::span<const ValidForm> valid_images();

/// The kernel on tensor `name` in the other memory layout (channels last, or rows); results come back in the kernel's
/// own. LibTorch has kernels for both that sum and round elsewhere: a port that lays out its images otherwise has the
/// other.
std::optional<Results> by_other_layout(ValidCall call, std::string_view name);

/// The dtype that sums are taken in: fp32 for half widths, else the tensor's own.
at::ScalarType sum_dtype(at::ScalarType dtype);

/// Parts [begin, begin + length) of a summed axis of `length` numbers, in the order in which they are added.
struct SumPart {
  int64_t begin, length, step = 1;
};
std::vector<SumPart> sum_parts(Arithmetic arithmetic, int64_t length);

/// The terms added up as `arithmetic` does: one after the other, or pairwise as a tree.
at::Tensor added_up(Arithmetic arithmetic, std::vector<at::Tensor> terms);

/// nullopt: this op is computed the same way under `arithmetic`.
std::optional<Results> run_otherwise(Arithmetic arithmetic, const Op& op, const c10::FunctionSchema& schema,
                                     const torch::jit::Stack& stack, const Kernel& kernel);

}  // namespace parity
