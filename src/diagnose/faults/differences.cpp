// A difference of two values: taken the other way, or added to the other one. Guidance is u + s (c - u) in most
// samplers and c + w (c - u), w = s - 1, in Ho and Salimans' paper (arXiv 2207.12598, equation 6) and others.
#include <memory>

#include "diagnose/faults/catalogue.hpp"

namespace parity {
namespace {

constexpr int kOtherNamesRank = 1;  // a rotation whose sign is wrong says more than a difference

bool plain(const Op& op) { return !op.kwargs.contains("alpha"); }

// self - other, two computed values of one shape.
bool is_difference(const ProgramIndex& program, int index) {
  const Op& op = program.op(index);
  if (op.name != "aten::sub.Tensor" || !plain(op) || op.outputs.empty() || !op.outputs[0]) return false;
  const int64_t self = program.argument(index, 0), other = program.argument(index, 1);
  if (self == other) return false;
  for (const int64_t id : {self, other})
    if (const Value* value = program.value(id); value == nullptr || value->shape != op.outputs[0]->shape) return false;
  return true;
}

// The sum behind op `index` that the difference, scaled, is added to, and which of the difference's operands that is.
void guidance(const ProgramIndex& program, int index, Hypotheses& to) {
  for (const int product : program.consumers(program.op(index).outputs[0]->id)) {
    if (program.op(product).kind != "mul" || !program.op(product).outputs[0]) continue;
    for (const int sum : program.consumers(program.op(product).outputs[0]->id)) {
      if (program.op(sum).name != "aten::add.Tensor" || !plain(program.op(sum))) continue;
      const size_t position = program.argument(sum, 0) == program.op(product).outputs[0]->id ? 1 : 0;
      const bool to_second = program.argument(sum, position) == program.argument(index, 1);
      if (!to_second && program.argument(sum, position) != program.argument(index, 0)) continue;
      FaultHypothesis h{"guidance form",
                        to_second ? "c + s (c - u) for u + s (c - u)" : "u + s (c - u) for c + s (c - u)",
                        program.place(sum)};
      const auto kept = std::make_shared<at::Tensor>();
      h.deviation.rewrites[index] = [kept, to_second](OpCall& call) {
        *kept = call.tensor(to_second ? "self" : "other");
        return call.run_again();
      };
      h.deviation.rewrites[sum] = [kept, argument = position == 0 ? "self" : "other"](OpCall& call) {
        call.set(argument, *kept);
        return call.run_again();
      };
      to.push_back(std::move(h));
    }
  }
}

}  // namespace

void difference_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  if (!is_difference(program, index)) return;
  add_fault(to, program, index, "sign", "operands of the difference exchanged", [](OpCall& call) {
    const at::Tensor self = call.tensor("self");
    call.set("self", call.tensor("other"));
    call.set("other", self);
    return call.run_again();
  });
  to.back().rank = kOtherNamesRank;
  guidance(program, index, to);
}

}  // namespace parity
