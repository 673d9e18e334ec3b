// What fused kernels leave unrounded. Another valid algorithm, not a fault: it widens the null distribution.
// - Eager attention: nothing that lies between its two products is rounded. Scores alone kept wide, with probabilities
//   rounded as recorded, are not a fused kernel's: that stays a missing rounding.
// - A linear layer whose product and bias are two ops: LibTorch itself takes one kernel or two by the layout and the
//   batch of the input (a transposed input: bmm, add; one sample of it alone: addmm).
#include <algorithm>
#include <set>

#include "core/dtype_kind.hpp"
#include "diagnose/faults/catalogue.hpp"

namespace parity {
namespace {

constexpr size_t kMostOps = 32;  // between two products: scale, mask, softmax, casts and copies

bool is_product_of_scores(const Op& op) { return op.kind == "bmm" || op.kind == "baddbmm" || op.kind == "matmul"; }

struct Between {
  std::vector<int> ops;  // computing ones, ascending, the first product included
  int softmax = -1, product = -1;
};

// What is computed from the first product's result until the next product takes it.
Between between_products(const ProgramIndex& program, int index) {
  Between found;
  std::set<int> seen;
  std::vector<int> todo{index};
  while (!todo.empty() && seen.size() < kMostOps) {
    const int i = todo.back();
    todo.pop_back();
    if (!seen.insert(i).second) continue;
    const Op& op = program.op(i);
    if (i != index && is_product_of_scores(op)) {
      found.product = i;
      continue;
    }
    if (op.kind == "_softmax") found.softmax = i;
    if (!op.view && !op.outputs.empty() && op.outputs[0] && at::isFloatingType(op.outputs[0]->dtype))
      found.ops.push_back(i);
    for (const auto& output : op.outputs)
      if (output)
        for (const int reader : program.consumers(output->id))
          if (reader > i) todo.push_back(reader);
  }
  std::sort(found.ops.begin(), found.ops.end());
  return found;
}

FaultHypothesis kept_wide(const ProgramIndex& program, std::string what, const std::vector<int>& ops) {
  FaultHypothesis h{std::string(kFusedKernel), std::move(what), program.place(ops.front()), Gate::none};
  h.valid = true;
  for (const int op : ops) h.deviation.rewrites[op] = [](OpCall& call) { return call.unrounded(call.arguments); };
  return h;
}

bool is_product(const Op& op) { return op.kind == "bmm" || op.kind == "mm" || op.kind == "matmul"; }

// The op that adds a bias, one number a feature, to the result of op `index`, moved or not; -1 for none.
int added_bias(const ProgramIndex& program, int index) {
  int64_t id = program.op(index).outputs[0]->id;
  for (size_t moves = 0; moves < kMostOps; ++moves) {
    const auto& readers = program.consumers(id);
    if (readers.size() != 1) return -1;
    const int reader = readers.front();
    const Op& op = program.op(reader);
    if (op.module_call != program.op(index).module_call || op.outputs.empty() || !op.outputs[0]) return -1;
    if (op.kind == "add" || op.kind == "add_") {
      const int64_t other = program.argument(reader, program.argument(reader, 0) == id ? 1 : 0);
      const Value* bias = program.value(other);
      const bool fits = bias != nullptr && bias->shape.size() == 1 && !op.outputs[0]->shape.empty() &&
                        bias->shape[0] == op.outputs[0]->shape.back();
      return fits && op.outputs[0]->dtype == program.op(index).outputs[0]->dtype ? reader : -1;
    }
    if (!op.view && op.kind != "_unsafe_view") return -1;
    id = op.outputs[0]->id;
  }
  return -1;
}

}  // namespace

void fused_bias(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (!is_product(op) || op.outputs.empty() || !op.outputs[0] || !is_half(op.outputs[0]->dtype)) return;
  if (added_bias(program, index) < 0) return;
  to.push_back(kept_wide(program, "bias added before the product is rounded", {index}));
  to.back().joint = true;
}

void fused_attention(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (!is_product_of_scores(op) || op.outputs.empty() || !op.outputs[0] || !is_half(op.outputs[0]->dtype)) return;
  const Between found = between_products(program, index);
  if (found.softmax < 0 || found.product < 0) return;
  to.push_back(kept_wide(program, "scores and probabilities kept wide", found.ops));
}

}  // namespace parity
