// One recorded op through LibTorch's boxed dispatcher, under a precision. Private to src/trace.
#pragma once
#include "trace/arguments.hpp"
#include "trace/replay.hpp"
#include "trace/rewrite.hpp"

namespace parity {

struct Executed {
  Results results;       // one an output of the op, in the replay's dtypes; nullopt where nothing computes it
  bool lowered = false;  // a float came out narrower than fp64 and was raised
  bool dynamic = false;  // the operator's result size depends on values
};

/// What LibTorch complains of, in one line without its backtrace.
std::string complaint(const std::exception& error);

class Executor {
 public:
  /// `lookup` hands out current values, `recorded_dtype` what a value had in the recording.
  /// `raised`: the same values in fp64, for exact arithmetic.
  Executor(Precision precision, ValueLookup lookup, std::function<at::ScalarType(int64_t)> recorded_dtype,
           Arithmetic arithmetic = Arithmetic::kernel, ValueLookup leaf = nullptr, ValueLookup raised = nullptr);

  /// Throws Error when this LibTorch lacks the operator, an argument does not fit, the kernel refuses, or the results
  /// differ in number, shape or dtype from what was recorded. The message does not name the op: the
  /// caller does. `writes`: the op changes arguments in place.
  /// `rewrite`: computes something else instead.
  Executed run(const Op& op, bool writes, const Rewrite* rewrite = nullptr) const;

  /// Recorded kernels, but fp64 and one rounding for an op that is rewritten or reads a value wider than recorded: no
  /// kernel was recorded for those.
  void exact_where_changed() { exact_where_changed_ = true; }

  /// Results that somebody has computed by the recorded kernels on the same memory; nullopt: nobody has.
  void take_from(std::function<std::optional<Results>(const Op&)> computed) { computed_ = std::move(computed); }

  /// `once(op, compute)` stands for `compute()`: an op on its own arguments that writes nothing, which others may have
  /// computed under this precision. Nobody may write to what it gives.
  using Once = std::function<Results(const Op&, const std::function<Results()>& compute)>;
  void compute_once(Once once) { once_ = std::move(once); }

  /// Is the memory of a value written to in place, ever? Others may be copied where a view does not fit their layout.
  void tell_written(std::function<bool(int64_t)> written) { written_ = std::move(written); }

 private:
  Results call(const Op& op, const c10::OperatorHandle& handle, bool writes, const Rewrite* rewrite) const;
  Results call_with(const Op& op, const c10::OperatorHandle& handle, const torch::jit::Stack& stack, bool writes,
                    bool rewritten = false) const;
  Results call_unchanged(const Op& op, const c10::OperatorHandle& handle, const torch::jit::Stack& stack,
                         bool writes) const;
  Results call_as_recorded(const Op& op, const c10::OperatorHandle& handle) const;
  Results call_exactly(const Op& op, const Rewrite* rewrite) const;
  torch::jit::Stack arguments(const Op& op, const c10::FunctionSchema& schema) const;
  bool reinterprets_bits(const Op& op) const;
  bool runs_exactly(const Op& op, const Rewrite* rewrite) const;
  torch::jit::Stack laid_out(const Op& op, torch::jit::Stack stack) const;

  Precision precision_;
  ValueLookup lookup_;
  std::function<at::ScalarType(int64_t)> recorded_dtype_;
  Arithmetic arithmetic_;
  bool exact_where_changed_ = false;
  std::function<bool(int64_t)> written_;
  std::function<std::optional<Results>(const Op&)> computed_;
  Once once_;
  ValueLookup leaf_;    // for rewrites
  ValueLookup raised_;  // for exact arithmetic
};

}  // namespace parity
