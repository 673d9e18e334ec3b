// Activations: GELU's two forms, another function, clamps.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "diagnose/faults/catalogue.hpp"
#include "diagnose/faults/constants.hpp"

namespace parity {
namespace {

bool argument_of(const OpCall& call, const char* name) {
  const c10::IValue value = call.value(name);
  return value.isScalar();
}

using Function = at::Tensor (*)(const at::Tensor&);

at::Tensor silu(const at::Tensor& x) { return at::silu(x); }
at::Tensor relu(const at::Tensor& x) { return at::relu(x); }
at::Tensor sigmoid(const at::Tensor& x) { return at::sigmoid(x); }
at::Tensor erf_form(const at::Tensor& x) { return at::gelu(x); }
at::Tensor tanh_form(const at::Tensor& x) { return at::gelu(x, "tanh"); }
at::Tensor sigmoid_form(const at::Tensor& x) { return x * at::sigmoid(kSigmoidGelu * x); }
at::Tensor left_out(const at::Tensor& x) { return x.clone(); }

void instead(const ProgramIndex& program, int index, const char* fault, const char* what, Function function,
             Hypotheses& to) {
  add_fault(to, program, index, fault, what,
            [function](OpCall& call) { return Results{function(call.tensor("self"))}; });
}

// gelu written out: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
void written_out(const ProgramIndex& program, int index, Hypotheses& to) {
  const int cube = program.behind(index, "pow", 5);
  if (cube < 0 || program.number(cube, 1) != 3) return;
  FaultHypothesis h{"GELU form", "erf for tanh", program.place(index)};
  const auto kept = std::make_shared<at::Tensor>();
  h.deviation.rewrites[cube] = [kept](OpCall& call) {
    *kept = call.tensor("self");
    return call.run_again();
  };
  h.deviation.rewrites[index] = [kept](OpCall&) { return Results{at::erf(*kept * M_SQRT1_2)}; };
  to.push_back(std::move(h));
}

// Does the module call hold elementwise ops alone, one of them curved?
bool is_activation(const ProgramIndex& program, const ModuleCall& module) {
  static constexpr std::array<std::string_view, 15> kPlain{"mul",     "add",  "sub",  "pow",      "tanh",
                                                           "sigmoid", "erf",  "neg",  "_to_copy", "exp",
                                                           "div",     "gelu", "silu", "relu",     "clone"};
  static constexpr std::array<std::string_view, 6> kCurved{"tanh", "sigmoid", "erf", "silu", "gelu", "relu"};
  bool curved = false;
  for (int i = module.begin; i < module.end; ++i) {
    const std::string& kind = program.op(i).kind;
    if (std::find(kPlain.begin(), kPlain.end(), kind) == kPlain.end()) return false;
    curved = curved || std::find(kCurved.begin(), kCurved.end(), kind) != kCurved.end();
  }
  return curved;
}

// A module of elementwise ops on one tensor that is an activation written out: another function in its place.
void whole_module(const ProgramIndex& program, int index, Hypotheses& to) {
  const auto& calls = program.program().calls;
  const int number = program.op(index).module_call;
  if (number < 0 || calls[number].begin != index || calls[number].inputs.size() != 1) return;
  const int last = calls[number].end - 1;
  if (!is_activation(program, calls[number]) || last < index || program.argument(index, 0) < 0) return;
  struct Other {
    const char *fault, *what;
    Function function;
  };
  static constexpr std::array kOthers{Other{"GELU form", "erf", erf_form},
                                      Other{"GELU form", "tanh", tanh_form},
                                      Other{"GELU form", "x sigmoid(1.702 x)", sigmoid_form},
                                      Other{"activation", "SiLU", silu},
                                      Other{"activation", "ReLU", relu},
                                      Other{"activation", "left out", left_out}};
  for (const Other& other : kOthers) {
    FaultHypothesis h{other.fault, fmt::format("{} in its place", other.what), program.place(index)};
    const auto kept = std::make_shared<at::Tensor>();
    h.deviation.rewrites[index] = [kept, function = other.function, alone = last == index](OpCall& call) {
      *kept = call.tensor("self").to(at::kDouble);
      return alone ? Results{function(*kept)} : call.run_again();
    };
    if (last != index)
      h.deviation.rewrites[last] = [kept, function = other.function](OpCall&) { return Results{function(*kept)}; };
    h.rank = 1;  // the same function computed wide is a rounding, not another form
    to.push_back(std::move(h));
  }
}

// A fused activation written out in a half dtype, each step rounded.
void narrow(const ProgramIndex& program, int index, Hypotheses& to) {
  const auto& output = program.op(index).outputs[0];
  if (!output || (output->dtype != at::kBFloat16 && output->dtype != at::kHalf)) return;
  FaultHypothesis h{"extra rounding", "each step of the activation rounded", program.place(index), Gate::dtype_path};
  const bool tanh = program.op(index).kwargs.value("approximate", std::string("none")) == "tanh";
  h.deviation.rewrites[index] = [dtype = output->dtype, tanh, silu = program.op(index).kind == "silu"](OpCall& call) {
    const auto r = [&](const at::Tensor& t) { return t.to(dtype).to(at::kDouble); };
    const at::Tensor x = call.tensor("self");
    if (silu) return Results{r(x * r(at::sigmoid(x))).to(dtype)};
    const at::Tensor inner =
        tanh ? r(at::tanh(r(std::sqrt(2 / M_PI) * r(x + r(kTanhGelu * r(x.pow(3))))))) : r(at::erf(r(x * M_SQRT1_2)));
    return Results{r(r(x / 2) * r(1 + inner)).to(dtype)};
  };
  to.push_back(std::move(h));
}

void clamp_limits(const ProgramIndex& program, int index, Hypotheses& to) {
  const size_t before = to.size();
  instead(
      program, index, "clamp limit", "not clamped", [](const at::Tensor& x) { return x.clone(); }, to);
  const auto scaled = [](double factor) {
    return [factor](OpCall& call) {
      for (const char* name : {"min", "max"})
        if (argument_of(call, name)) call.set(name, c10::Scalar(call.value(name).toScalar().toDouble() * factor));
      return call.run_again();
    };
  };
  add_fault(to, program, index, "clamp limit", "limits differ a little", scaled(1 - kTried), false);
  for (const double factor : kFactors)
    add_fault(to, program, index, "clamp limit", fmt::format("limits x {:g}", factor), scaled(factor));
  add_fault(to, program, index, "clamp limit", "from zero",
            [](OpCall& call) { return Results{call.run_again()[0]->clamp_min(0)}; });
  for (size_t i = before; i < to.size(); ++i) to[i].joint = true;  // one constant for gate and value
}

// Another function for a fused one.
void another_function(const ProgramIndex& program, int index, std::string_view kind, Hypotheses& to) {
  instead(program, index, "activation", "left out", left_out, to);
  if (kind == "gelu") {
    if (program.op(index).kwargs.value("approximate", std::string("none")) == "tanh")
      instead(program, index, "GELU form", "erf for tanh", erf_form, to);
    else
      instead(program, index, "GELU form", "tanh for erf", tanh_form, to);
    instead(program, index, "GELU form", "x sigmoid(1.702 x)", sigmoid_form, to);
    instead(program, index, "activation", "SiLU for GELU", silu, to);
    instead(program, index, "activation", "ReLU for GELU", relu, to);
  }
  if (kind == "silu") {
    instead(program, index, "activation", "GELU for SiLU", erf_form, to);
    instead(program, index, "activation", "GELU (tanh) for SiLU", tanh_form, to);
    instead(program, index, "activation", "x sigmoid(1.702 x) for SiLU", sigmoid_form, to);
    instead(program, index, "activation", "ReLU for SiLU", relu, to);
    instead(program, index, "activation", "sigmoid for SiLU", sigmoid, to);
  }
  if (kind == "relu") {
    instead(program, index, "activation", "GELU for ReLU", erf_form, to);
    instead(program, index, "activation", "SiLU for ReLU", silu, to);
    add_fault(
        to, program, index, "activation", "not flat below zero, tried 0.01 of it",
        [](OpCall& call) { return Results{at::leaky_relu(call.tensor("self"), kTried)}; }, false);
  }
}

}  // namespace

void activation_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (op.kind == "gelu" || op.kind == "silu") narrow(program, index, to);
  const std::string_view kind = std::string_view(op.kind).substr(0, op.kind.find_last_not_of('_') + 1);  // relu_
  if (kind == "gelu" || kind == "silu" || kind == "relu")
    another_function(program, index, kind, to);
  else
    whole_module(program, index, to);
  if (op.name == "aten::mul.Tensor" && program.number(index, 1) && program.ahead(index, "sigmoid", 1) >= 0)
    instead(program, index, "activation", "factor before the sigmoid left out", left_out, to);
  if (op.kind == "pow")  // the first op of a GELU written out that is rewritten
    if (const int tanh_op = program.ahead(index, "tanh", 5); tanh_op >= 0 && program.number(index, 1) == 3)
      written_out(program, tanh_op, to);
  if (op.kind == "clamp" || op.kind == "clamp_max" || op.kind == "clamp_min") clamp_limits(program, index, to);
}

}  // namespace parity
