// Soft caps: c tanh(x / c) on attention scores or logits (Bello et al. 2016, arXiv 1611.09940, section 5), which fused
// kernels without such an argument silently leave out.
#include <fmt/format.h>

#include "diagnose/faults/catalogue.hpp"
#include "diagnose/faults/constants.hpp"

namespace parity {
namespace {

bool scales(const ProgramIndex& program, int index) {
  const std::string& kind = program.op(index).kind;
  return (kind == "div" || kind == "mul") && program.number(index, 1).value_or(0) != 0;
}

// The only op that reads what `index` makes, through nothing; -1: none, or several.
int only_reader(const ProgramIndex& program, int index) {
  const auto& outputs = program.op(index).outputs;
  if (outputs.size() != 1 || !outputs[0]) return -1;
  const auto& readers = program.consumers(outputs[0]->id);
  return readers.size() == 1 ? readers.front() : -1;
}

Rewrite passed_on() {
  return [](OpCall& call) { return Results{call.tensor("self").clone()}; };
}

// The cap times `factor`: before the tanh it divides, behind it multiplies.
Rewrite with_cap_times(double factor, bool before) {
  return [factor, before](OpCall& call) {
    const bool is_cap = before == (call.op.kind == "div");  // else the number is one over the cap
    call.set("other", c10::Scalar(call.op.args[1].get<double>() * (is_cap ? factor : 1 / factor)));
    return call.run_again();
  };
}

void add(const ProgramIndex& program, const std::string& what, int first, std::map<int, Rewrite> rewrites, bool fixed,
         Hypotheses& to) {
  FaultHypothesis h{"soft cap", what, program.place(first), Gate::logic, fixed};
  h.deviation.rewrites = std::move(rewrites);
  to.push_back(std::move(h));
}

}  // namespace

void soft_cap_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  if (!scales(program, index)) return;
  const int tanh = only_reader(program, index);
  if (tanh < 0 || program.op(tanh).kind != "tanh") return;
  const int last = only_reader(program, tanh);
  if (last < 0 || !scales(program, last)) return;
  add(program, "left out", index, {{index, passed_on()}, {tanh, passed_on()}, {last, passed_on()}}, true, to);
  const auto another = [&](const std::string& what, double factor, bool fixed) {
    add(program, what, index, {{index, with_cap_times(factor, true)}, {last, with_cap_times(factor, false)}}, fixed,
        to);
  };
  another("cap differs slightly", 1 + kTried, false);
  for (const double factor : kFactors) another(fmt::format("cap x {:g}", factor), factor, true);
}

}  // namespace parity
