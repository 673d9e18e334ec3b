// Dividing a program at its compared values.
#pragma once
#include <vector>

#include "core/segment.hpp"
#include "trace/program.hpp"

namespace parity {

/// One a boundary. `marked`: those whose values the candidate gives.
std::vector<Segment> segments_of(const Program& program, const std::vector<bool>& marked);

/// What running each op costs, in multiplications of a matrix product: relative numbers, the same on every machine.
std::vector<double> work_of_ops(const Program& program);

}  // namespace parity
