// Constants within an activation that are a little off (1.7 for 1.702, 0.0447 for 0.044715): the size is estimated.
#include <fmt/format.h>

#include <cmath>
#include <set>

#include "diagnose/faults/catalogue.hpp"
#include "diagnose/faults/chains.hpp"
#include "diagnose/faults/constants.hpp"
#include "diagnose/limits.hpp"

namespace parity {
namespace {

// Is an activation, or a step of one, computed from what op `index` makes, by elementwise steps alone?
bool is_bent_behind(const ProgramIndex& program, int index) {
  constexpr size_t kSteps = 6;  // GELU's cubic term: factor, sum, factor, tanh
  std::vector<int> todo{index};
  for (size_t next = 0; next < todo.size() && next < kSteps; ++next)
    for (const auto& output : program.op(todo[next]).outputs)
      if (output)
        for (const int reader : program.consumers(output->id)) {
          if (reader <= todo[next] || !is_elementwise(program.op(reader))) continue;
          if (is_activation_op(program.op(reader))) return true;
          todo.push_back(reader);
        }
  return false;
}

void add_constant(const ProgramIndex& program, int index, double own, Rewrite rewrite, Hypotheses& to) {
  add_fault(to, program, index, "activation",
            fmt::format("constant {:g} differs slightly, tried {:g}", own, own * (1 + kTried)), std::move(rewrite),
            false);
  to.back().step = kTried;
  to.back().rank = 1;  // another function, or a constant left out, says more
  to.back().most = kRecognition.slightly / kTried;
  to.back().least = -to.back().most;
}

void written_out_constant(const ProgramIndex& program, int index, Hypotheses& to) {
  const double own = program.number(index, 1).value_or(0);
  if (own == 0 || !is_bent_behind(program, index)) return;
  add_constant(
      program, index, own,
      [own](OpCall& call) {
        call.set("other", c10::Scalar(own * (1 + kTried)));
        return call.run_again();
      },
      to);
}

// GELU's tanh form: x (1 + tanh(root (x + cubic x^3))) / 2.
void fused_constants(const ProgramIndex& program, int index, std::string_view kind, Hypotheses& to) {
  constexpr double kRoot = M_2_SQRTPI * M_SQRT1_2;  // sqrt(2 / pi)
  const bool tanh = program.op(index).kwargs.value("approximate", std::string("none")) == "tanh";
  const auto with = [&](double own, at::Tensor (*of)(const at::Tensor& x)) {
    add_constant(
        program, index, own, [of](OpCall& call) { return Results{of(call.tensor("self"))}; }, to);
  };
  if (kind == "silu") with(1, [](const at::Tensor& x) { return x * at::sigmoid(x * (1 + kTried)); });
  if (kind == "gelu" && !tanh)
    with(M_SQRT1_2, [](const at::Tensor& x) { return x * (1 + at::erf(x * (M_SQRT1_2 * (1 + kTried)))) / 2; });
  if (kind != "gelu" || !tanh) return;
  with(kTanhGelu,
       [](const at::Tensor& x) { return x * (1 + at::tanh((x + x.pow(3) * (kTanhGelu * (1 + kTried))) * kRoot)) / 2; });
  with(kRoot,
       [](const at::Tensor& x) { return x * (1 + at::tanh((x + x.pow(3) * kTanhGelu) * (kRoot * (1 + kTried)))) / 2; });
}

}  // namespace

void constant_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (op.kind == "gelu" || op.kind == "silu") fused_constants(program, index, op.kind, to);
  if (op.name == "aten::mul.Tensor" || op.name == "aten::div.Tensor") written_out_constant(program, index, to);
}

}  // namespace parity
