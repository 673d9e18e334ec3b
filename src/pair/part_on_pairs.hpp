// The part of a program between some pairs and what follows from them, run alone on the candidate's values.
#pragma once
#include <memory>
#include <set>
#include <vector>

#include "trace/replay.hpp"

namespace parity {

struct PartOnPairs {
  std::shared_ptr<const ProgramPart> part;
  std::set<size_t> needed;  // marked boundaries that it reads, whose values must be given
  double work = 0;          // multiplications, see work_of_ops
};

/// What computes the boundaries of `targets` (ascending) since those of `marked` (by boundary, the targets among them).
/// `work_of_ops`: by op.
PartOnPairs part_on_pairs(const Program& program, const std::vector<bool>& marked, const std::vector<size_t>& targets,
                          const std::vector<double>& work_of_ops);

}  // namespace parity
