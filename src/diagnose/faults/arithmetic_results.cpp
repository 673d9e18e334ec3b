// Results of ops in a narrower format than the program shows, and numbers below the normal range taken for zero.
#include <fmt/format.h>

#include <array>
#include <limits>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"
#include "diagnose/faults/arithmetic.hpp"
#include "diagnose/faults/number_formats.hpp"
#include "trace/operator.hpp"

namespace parity {
namespace {

bool computes_numbers(const Op& op) {
  return !op.view && !is_uninitialised(op.kind) && !op.kind.ends_with('_') && !op.outputs.empty() && op.outputs[0] &&
         at::isFloatingType(op.outputs[0]->dtype) && op.kind != "_to_copy" && op.kind != "clone" && op.kind != "cat" &&
         op.kind != "stack";
}

double smallest_normal(at::ScalarType dtype) {
  if (dtype == at::kHalf) return std::numeric_limits<c10::Half>::min();
  return std::numeric_limits<float>::min();  // bf16 has the same exponents
}

at::Tensor flushed(const at::Tensor& t, double smallest) { return t.masked_fill(t.abs().lt(smallest), 0); }

}  // namespace

void narrow_results(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (!computes_numbers(op) || op.outputs[0]->dtype != at::kFloat) return;
  struct Narrow {
    const char* name;
    Rounding rounding;
  };
  constexpr std::array kNarrow{Narrow{"bf16", to_bf16}, Narrow{"fp16", to_fp16}};
  for (const Narrow& n : kNarrow)
    add_arithmetic(to, program, index, fmt::format("extra rounding: result {}", n.name),
                   fmt::format("result rounded to {}", n.name), [rounding = n.rounding](OpCall& call) {
                     as_floats(call);
                     Results results = call.run_again();
                     results[0] = rounding(*results[0]);
                     return results;
                   });
}

void flushed_denormals(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (!computes_numbers(op) || op.outputs[0]->dtype == at::kDouble) return;
  const double smallest = smallest_normal(op.outputs[0]->dtype);
  add_arithmetic(to, program, index, "denormals: flushed", "inputs and results below the normal range taken for zero",
                 [smallest](OpCall& call) {
                   as_floats(call);
                   for (c10::IValue& argument : call.arguments)
                     if (argument.isTensor() && at::isFloatingType(argument.toTensor().scalar_type()))
                       argument = flushed(argument.toTensor(), smallest);
                   Results results = call.run_again();
                   results[0] = flushed(*results[0], smallest);
                   return results;
                 });
}

}  // namespace parity
