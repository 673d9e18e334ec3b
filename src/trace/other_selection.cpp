// Would the values at hand select what was recorded?
#include "core/error.hpp"
#include "trace/lane.hpp"

namespace parity {
void Lane::note_selection(const Op& op, int index) {
  const bool recorded_kernels = options_.precision == Precision::recorded && options_.arithmetic == Arithmetic::kernel;
  if (!recorded_kernels || op.opaque != kDataDependent || op.outputs.empty() || !op.outputs[0]) return;
  const at::Tensor recorded = get(op.outputs[0]->id);
  if (recorded.dim() == 0) return;
  try {
    const std::optional<at::Tensor> selected = executor_.run(op, false).results.at(0);
    if (selected && selected->dim() == recorded.dim() && !at::equal(*selected, recorded.to(selected->device())))
      report_.selections.push_back({static_cast<size_t>(index), recorded.size(0), selected->size(0)});
  } catch (const Error&) {  // an op that only the recording's machine has: nothing is known of its selection
  }
}

}  // namespace parity
