// Where a program in half width loses its accuracy, and what single ops in higher precision would bring: for the
// question that is left when no op is wrong.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "trace/program.hpp"

namespace parity {

/// What every rounding of the recorded program does to its result at boundary `root`. The rounding of an op is its
/// recorded value less the op in fp64 on the recorded values before it; each is put into the fp64 program alone and
/// carried to the result. The ops whose roundings together are most of the error are chosen one after the other
/// (greedy, each at its whole size), `most` at most; the error without them is predicted from the sum of what is left,
/// and then computed: the recorded program runs once more with exactly those results kept in fp64.
/// Fills error, explained, roundings and steps. Costs, in fp64, the ops after each rounding once. Throws Error as
/// `replay`.
struct PrecisionGain {
  double error = 0;       // relative L2 of the recorded program's result against the program in fp64
  double explained = 0;   // share of its square that the roundings, carried one by one, leave nothing of
  int64_t roundings = 0;  // ops that round
  std::vector<PrecisionStep> steps;
};
PrecisionGain precision_gain(const Dump& dump, const Program& program, size_t root, size_t most,
                             const std::function<void(double done)>& progress);

}  // namespace parity
