// Activations: GELU's two forms, another function, clamps.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "diagnose/faults/catalogue.hpp"

namespace parity {
namespace {

bool argument_of(const OpCall& call, const char* name) {
  const c10::IValue value = call.value(name);
  return value.isScalar();
}

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
  FaultHypothesis h{"GELU form", "erf for tanh at " + program.path(index), Gate::logic, true, {}};
  const auto kept = std::make_shared<at::Tensor>();
  h.deviation.rewrites[cube] = [kept](OpCall& call) {
    *kept = call.tensor("self");
    return call.run_again();
  };
  h.deviation.rewrites[index] = [kept](OpCall&) { return Results{at::erf(*kept * M_SQRT1_2)}; };
  to.push_back(std::move(h));
}

// A module of elementwise ops on one tensor that is an activation written out: another function in its place.
void whole_module(const ProgramIndex& program, int index, Hypotheses& to) {
  const auto& calls = program.program().calls;
  const int number = program.op(index).module_call;
  if (number < 0 || calls[number].begin != index || calls[number].inputs.size() != 1) return;
  const ModuleCall& module = calls[number];
  bool curved = false;
  for (int i = module.begin; i < module.end; ++i) {
    const std::string& kind = program.op(i).kind;
    static constexpr std::array<std::string_view, 15> kPlain{"mul",     "add",  "sub",  "pow",      "tanh",
                                                             "sigmoid", "erf",  "neg",  "_to_copy", "exp",
                                                             "div",     "gelu", "silu", "relu",     "clone"};
    if (std::find(kPlain.begin(), kPlain.end(), kind) == kPlain.end()) return;
    curved = curved || kind == "tanh" || kind == "sigmoid" || kind == "erf" || kind == "silu" || kind == "gelu" ||
             kind == "relu";
  }
  const int last = module.end - 1;
  if (!curved || last < index || program.argument(index, 0) < 0) return;
  struct Other {
    const char *fault, *what;
    Function function;
  };
  static constexpr std::array kOthers{
      Other{"GELU form", "erf", [](const at::Tensor& x) { return at::gelu(x); }},
      Other{"GELU form", "tanh", [](const at::Tensor& x) { return at::gelu(x, "tanh"); }},
      Other{"GELU form", "x sigmoid(1.702 x)", [](const at::Tensor& x) { return x * at::sigmoid(1.702 * x); }},
      Other{"activation", "SiLU", [](const at::Tensor& x) { return at::silu(x); }},
      Other{"activation", "ReLU", [](const at::Tensor& x) { return at::relu(x); }},
      Other{"activation", "left out", [](const at::Tensor& x) { return x.clone(); }}};
  for (const Other& other : kOthers) {
    FaultHypothesis h{
        other.fault, fmt::format("{} in its place at {}", other.what, program.path(index)), Gate::logic, true, {}};
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
  FaultHypothesis h{
      "extra rounding", "each step of the activation rounded at " + program.path(index), Gate::dtype_path, true, {}};
  const bool tanh = program.op(index).kwargs.value("approximate", std::string("none")) == "tanh";
  h.deviation.rewrites[index] = [dtype = output->dtype, tanh, silu = program.op(index).kind == "silu"](OpCall& call) {
    const auto r = [&](const at::Tensor& t) { return t.to(dtype).to(at::kDouble); };
    const at::Tensor x = call.tensor("self");
    if (silu) return Results{r(x * r(at::sigmoid(x))).to(dtype)};
    const at::Tensor inner =
        tanh ? r(at::tanh(r(std::sqrt(2 / M_PI) * r(x + r(.044715 * r(x.pow(3))))))) : r(at::erf(r(x * M_SQRT1_2)));
    return Results{r(r(.5 * x) * r(1 + inner)).to(dtype)};
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
  add_fault(to, program, index, "clamp limit", "limits differ a little", scaled(.99), false);
  for (const double factor : {.5, 2.})
    add_fault(to, program, index, "clamp limit", fmt::format("limits x {}", factor), scaled(factor));
  for (const double limit : {1., 6., 7., 10.})
    add_fault(to, program, index, "clamp limit", fmt::format("limit {}", limit), [limit](OpCall& call) {
      for (const char* name : {"min", "max"})
        if (argument_of(call, name))
          call.set(name, c10::Scalar(std::copysign(limit, call.value(name).toScalar().toDouble())));
      return call.run_again();
    });
  add_fault(to, program, index, "clamp limit", "from zero",
            [](OpCall& call) { return Results{call.run_again()[0]->clamp_min(0)}; });
  for (size_t i = before; i < to.size(); ++i) to[i].joint = true;  // one constant for gate and value
}

}  // namespace

void activation_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  const auto silu = [](const at::Tensor& x) { return at::silu(x); };
  const auto relu = [](const at::Tensor& x) { return at::relu(x); };
  const auto quick = [](const at::Tensor& x) { return x * at::sigmoid(1.702 * x); };
  const auto erf = [](const at::Tensor& x) { return at::gelu(x); };
  const auto tanh = [](const at::Tensor& x) { return at::gelu(x, "tanh"); };
  const auto none = [](const at::Tensor& x) { return x.clone(); };
  if (op.kind == "gelu" || op.kind == "silu") narrow(program, index, to);
  if (op.kind == "gelu" || op.kind == "silu" || op.kind == "relu")
    instead(program, index, "activation", "left out", none, to);
  else
    whole_module(program, index, to);
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
  if (op.name == "aten::mul.Tensor" && program.number(index, 1) && program.ahead(index, "sigmoid", 1) >= 0)
    instead(program, index, "activation", "factor before the sigmoid left out", none, to);
  if (op.kind == "tanh") {  // its first rewritten op is the cube: offered there
    return;
  }
  if (op.kind == "pow") {
    if (const int tanh_op = program.ahead(index, "tanh", 5); tanh_op >= 0 && program.number(index, 1) == 3.0)
      written_out(program, tanh_op, to);
  }
  if (op.kind == "clamp" || op.kind == "clamp_max" || op.kind == "clamp_min") clamp_limits(program, index, to);
}

}  // namespace parity
