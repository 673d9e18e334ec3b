// Activations: GELU's two forms, another function, clamps.
#include <cmath>

#include "compare/faults/catalogue.hpp"

namespace parity {
namespace {

using Function = at::Tensor (*)(const at::Tensor&);

void instead(const ProgramIndex& program, int index, const char* fault, const char* what, Function function,
             Hypotheses& to) {
  add_fault(to, program, index, fault, what,
            [function](OpCall& call) { return Results{function(call.tensor("self"))}; });
}

// gelu written out: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
void written_out(const ProgramIndex& program, int index, Hypotheses& to) {
  const int cube = program.behind(index, "pow", 5);
  if (cube < 0 || program.number(cube, 1) != 3.0) return;
  Hypothesis h{"GELU form", "erf for tanh at " + program.path(index), Gate::logic, true, {}};
  const auto kept = std::make_shared<at::Tensor>();
  h.deviation.rewrites[cube] = [kept](OpCall& call) {
    *kept = call.tensor("self");
    return call.run_again();
  };
  h.deviation.rewrites[index] = [kept](OpCall&) { return Results{at::erf(*kept * M_SQRT1_2)}; };
  to.push_back(std::move(h));
}

}  // namespace

void activation_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  const auto silu = [](const at::Tensor& x) { return at::silu(x); };
  const auto relu = [](const at::Tensor& x) { return at::relu(x); };
  const auto quick = [](const at::Tensor& x) { return x * at::sigmoid(1.702 * x); };
  const auto erf = [](const at::Tensor& x) { return at::gelu(x); };
  const auto tanh = [](const at::Tensor& x) { return at::gelu(x, "tanh"); };
  if (op.kind == "gelu") {
    const bool is_tanh = op.kwargs.value("approximate", std::string("none")) == "tanh";
    if (is_tanh)
      instead(program, index, "GELU form", "erf for tanh", erf, to);
    else
      instead(program, index, "GELU form", "tanh for erf", tanh, to);
    instead(program, index, "GELU form", "x sigmoid(1.702 x)", quick, to);
    instead(program, index, "activation", "SiLU for GELU", silu, to);
    instead(program, index, "activation", "ReLU for GELU", relu, to);
  }
  if (op.kind == "silu") {
    instead(program, index, "activation", "GELU for SiLU", erf, to);
    instead(program, index, "activation", "GELU (tanh) for SiLU", tanh, to);
    instead(program, index, "activation", "ReLU for SiLU", relu, to);
    instead(
        program, index, "activation", "sigmoid for SiLU", [](const at::Tensor& x) { return at::sigmoid(x); }, to);
  }
  if (op.kind == "relu") {
    instead(program, index, "activation", "GELU for ReLU", erf, to);
    instead(program, index, "activation", "SiLU for ReLU", silu, to);
  }
  if (op.kind == "tanh") {  // its first rewritten op is the cube: offered there
    return;
  }
  if (op.kind == "pow") {
    if (const int tanh_op = program.ahead(index, "tanh", 5); tanh_op >= 0 && program.number(index, 1) == 3.0)
      written_out(program, tanh_op, to);
  }
  if (op.kind == "clamp" || op.kind == "clamp_max" || op.kind == "clamp_min")
    instead(
        program, index, "clamp limit", "not clamped", [](const at::Tensor& x) { return x.clone(); }, to);
}

}  // namespace parity
