// What is looked at of both sides' tensors for pairing by content.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/progress.hpp"
#include "pair/by_content.hpp"
#include "pair/candidate.hpp"
#include "trace/replay.hpp"

namespace parity {

struct Prints {
  std::vector<size_t> index;  // boundary or candidate tensor, ascending
  std::vector<NamedTensor> tensors;

  size_t position_of(size_t i) const;
  /// nullptr when it is not among them.
  const NamedTensor* find(size_t i) const;
};

/// The reference's values, looked at once and not kept: its own, or what `forced` makes it go on from.
Prints reference_prints(const Dump& dump, const Program& program, const ShareDone& progress,
                        const BoundaryVisitor& forced = nullptr);

/// Does one of the reference's values that `eligible` names hold what this tensor of the candidate holds?
bool held_elsewhere(const Prints& here, const NamedTensor& tensor, const std::function<bool(size_t)>& eligible);

/// The candidate's, but for the ops of a recorded program, which have names of their own.
Prints candidate_prints(const std::vector<CandidateTensor>& candidate, const ShareDone& progress);

}  // namespace parity
