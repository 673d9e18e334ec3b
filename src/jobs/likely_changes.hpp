// Which of a stretch's named changes are worth a run: all logic faults are put against the difference to first order
// (trace/first_order.hpp), singly and, since a port's mistake lies in code that every layer runs, at the same place of
// every layer together. On GPT-2 (12 layers) the first order of a change in layer 5 lies along its effect on the logits
// with a cosine of .8 to 1, of .45 for a residual left out.
#pragma once
#include "jobs/stretch.hpp"

namespace parity {

struct LikelyChanges {
  std::vector<StretchChange> changes;  // those that point along the difference, the likeliest first; then those that
                                       // have no first order
  int64_t estimated = 0;
};

/// `logic`: to choose from; `deviations`: the same without their roundings. Throws Error when the stretch cannot be run
/// or differentiated.
LikelyChanges likely_changes(const Dump& dump, const Program& program, const Stretch& stretch,
                             std::vector<StretchChange> logic, const std::vector<Deviation>& deviations);

}  // namespace parity
