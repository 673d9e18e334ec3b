// Experts: which are chosen, and how their results are weighted.
#include <memory>

#include "diagnose/faults/catalogue.hpp"

namespace parity {
namespace {

void chosen(const ProgramIndex& program, int index, Hypotheses& to) {
  add_fault(to, program, index, "expert routing", "the lowest scores chosen", [](OpCall& call) {
    call.set("largest", false);
    return call.run_again();
  });
  add_fault(to, program, index, "expert routing", "scores in reverse", [](OpCall& call) {
    Results results = call.run_again();
    results[0] = results[0]->flip({-1});
    return results;
  });
  add_fault(to, program, index, "expert routing", "experts one further", [](OpCall& call) {
    Results results = call.run_again();
    results[1] = (*results[1] + 1).remainder(call.tensor("self").size(-1));
    return results;
  });
  if (program.behind(index, "_softmax", 2) >= 0 && program.ahead(index, "sum", 1) < 0)
    add_fault(to, program, index, "expert routing", "weights normalised among the chosen", [](OpCall& call) {
      Results results = call.run_again();
      results[0] = *results[0] / results[0]->sum(-1, true);
      return results;
    });
  const int softmax = program.ahead(index, "_softmax", 3);
  if (softmax < 0) return;
  FaultHypothesis h{"expert routing", "weights of all experts, not normalised among the chosen", program.place(index)};
  const auto kept = std::make_shared<std::pair<at::Tensor, at::Tensor>>();
  h.deviation.rewrites[index] = [kept](OpCall& call) {
    const Results results = call.run_again();
    *kept = {call.tensor("self").to(at::kDouble), *results[1]};
    return results;
  };
  h.deviation.rewrites[softmax] = [kept](OpCall&) { return Results{kept->first.softmax(-1).gather(-1, kept->second)}; };
  to.push_back(std::move(h));
}

}  // namespace

void routing_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (op.kind == "topk") chosen(program, index, to);
  if ((op.kind == "div" || op.kind == "div_") && program.behind(index, "sum", 2) >= 0 &&
      program.behind(index, "topk", 6) >= 0)
    add_fault(to, program, index, "expert routing", "weights not normalised among the chosen", [](OpCall& call) {
      call.set("other", at::ones_like(call.tensor("other")));  // in place, too
      return call.run_again();
    });
}

}  // namespace parity
