// From measured numbers to a verdict. Touches no tensor.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/precision.hpp"
#include "core/result.hpp"

namespace parity {

/// What is promised of an op kind when both sides run it teacher-forced, in the same dtypes, on the same kernels.
struct KindLimit {
  std::string_view kind;
  double min_equal_share;  // of bitwise equal elements
  double max_rel_l2_in_u;  // relative L2 in unit roundoffs of the output's dtype
  std::string_view reason;
};

/// The limit of a kind, or nullptr: a row without a limit is never green.
const KindLimit* find_limit(std::string_view kind);

/// fp64, teacher-forced: both sides compute the same formula in other orders; 1e-12 is 4500 roundings of fp64, and the
/// smallest fault seen (LayerNorm eps 1e-5 for 1e-6) is 1.7e-6.
inline constexpr double kLogicLimit = 1e-12;

/// What the reference's own program does at this op on this machine, against the recorded values: the null of other
/// kernels.
struct NullRun {
  std::optional<double> equal_share;  // smallest over the runs; absent: the recorded value was not stored
  std::optional<double> rel_l2;       // largest over the runs
  int runs = 0;
};

struct JudgeInput {
  Precision precision = Precision::recorded;
  bool is_fp64 = false;  // the run's floats are fp64: gate logic, no dtype path
  NullRun null;
  std::optional<Stats>
      same_machine;  // candidate against the replay on this machine; absent: that is bitwise what was recorded
  at::ScalarType reference_dtype = at::kFloat, candidate_dtype = at::kFloat;
};

/// Sets verdict, gate, limits and diagnosis of a measured row: structure, then logic, then dtype path; stops at the
/// first that fails. Constant, empty, mostly-zero or bound-less rows become untrusted.
void judge_local(OpResult& row, const JudgeInput& input);

/// Propagation, after `judge_local`: is the free-running error what the inputs' errors, the amplification and the op's
/// own error predict? More than twice the prediction is inconclusive, more than ten times fails (gate propagation);
/// such a row is never the first divergence. `largest_input_error`: the largest free-running relative L2 among the
/// paired values that this op is computed from.
void judge_propagation(OpResult& row, double largest_input_error, double unit);

}  // namespace parity
