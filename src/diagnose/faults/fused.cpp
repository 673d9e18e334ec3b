// Eager attention computed as a fused kernel does it: nothing that lies between its two products is rounded. Another
// valid algorithm, not a fault: it widens the null distribution. Scores alone kept wide, with probabilities rounded as
// recorded, is no fused kernel's: that stays a missing rounding.
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

FaultHypothesis kept_wide(std::string detail, const std::vector<int>& ops) {
  FaultHypothesis h{"fused attention", std::move(detail), Gate::none, true, {}};
  h.valid = true;
  for (const int op : ops) h.deviation.rewrites[op] = [](OpCall& call) { return call.unrounded(call.arguments); };
  return h;
}

}  // namespace

void fused_attention(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (!is_product_of_scores(op) || op.outputs.empty() || !op.outputs[0] || !is_half(op.outputs[0]->dtype)) return;
  const Between found = between_products(program, index);
  if (found.softmax < 0 || found.product < 0) return;
  to.push_back(kept_wide("scores and probabilities kept wide at " + op.path, found.ops));
}

}  // namespace parity
