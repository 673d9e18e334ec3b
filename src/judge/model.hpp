// From measured numbers to a verdict. Touches no tensor.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/precision.hpp"
#include "core/result.hpp"

namespace parity {

/// What the reference's own program does at this op on this machine, against the recorded values: the null of other
/// kernels.
struct NullRun {
  std::optional<double> equal_share;  // smallest over the runs; absent: the recorded value was not stored
  std::optional<double> rel_l2;       // largest over the runs
  int runs = 0;
};

struct JudgeInput {
  Precision precision = Precision::recorded;
  bool other_kernels = false;  // the candidate's sums are not LibTorch's: held to fp64, not to its bits
  bool is_fp64 = false;        // the run's floats are fp64: gate logic, no dtype path
  NullRun null;
  std::optional<Stats>
      same_machine;  // candidate against the replay on this machine; absent: that is bitwise what was recorded here
  at::ScalarType reference_dtype = at::kFloat, candidate_dtype = at::kFloat;
};

/// Sets verdict, gate, limits and diagnosis of a measured row: structure, then logic, then dtype path; stops at the
/// first that fails. Constant, empty, mostly-zero or bound-less rows become untrusted.
void judge_local(OpResult& row, const JudgeInput& input);

}  // namespace parity
