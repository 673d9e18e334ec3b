// Equal scores: which of them a top-k or an unstable sort puts first is nobody's contract (torch.topk, torch.sort with
// stable=False) and follows the number of threads, the device, the release. Another valid order, not a fault: it widens
// the null distribution where there are ties, and changes nothing elsewhere.
#include "diagnose/faults/catalogue.hpp"

namespace parity {
namespace {

bool keeps_order(const Op& op) { return op.kwargs.contains("stable") && op.kwargs["stable"] == true; }

// Equals by their place, the first or the last of them first: what a kernel takes lies between the two.
Results by_place(OpCall& call, bool last_first) {
  const at::Tensor scores = call.tensor("self");
  const int64_t axis = call.value("dim").toInt(), n = scores.size(axis);
  const bool topk = call.op.kind == "topk";
  auto [values, places] = at::sort(last_first ? scores.flip({axis}) : scores, /*stable=*/true, axis,
                                   call.value(topk ? "largest" : "descending").toBool());
  if (last_first) places = n - 1 - places;
  const int64_t taken = topk ? call.value("k").toInt() : n;
  return {values.slice(axis, 0, taken).to(call.op.outputs.at(0)->dtype), places.slice(axis, 0, taken)};
}

}  // namespace

void broken_ties(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if ((op.kind != "topk" && op.kind != "sort") || keeps_order(op)) return;
  const Value* scores = program.value(program.argument(index, 0));
  if (scores == nullptr || !at::isFloatingType(scores->dtype)) return;  // ids in order have ties on purpose
  for (const bool last_first : {false, true}) {
    FaultHypothesis h{"tie", last_first ? "the last of equal scores first" : "the first of equal scores first",
                      program.place(index), Gate::none};
    h.valid = h.joint = true;
    h.deviation.rewrites[index] = [last_first](OpCall& call) { return by_place(call, last_first); };
    to.push_back(std::move(h));
  }
}

}  // namespace parity
