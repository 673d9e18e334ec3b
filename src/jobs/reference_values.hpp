// What the reference computed at the boundaries of interest, under a precision: recorded, or replayed.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "judge/model.hpp"
#include "trace/replay.hpp"

namespace parity {

struct ReferenceValues {
  std::map<size_t, at::Tensor> values;  // by boundary: what the candidate is compared with and continues from
  std::map<size_t, at::Tensor>
      same_machine;  // where the replay on this machine is not bitwise what was recorded: what it computed
  std::map<size_t, NullRun> null;            // recorded precision: how far the replay lies from the recorded values
  std::vector<std::string> opaque, lowered;  // as ReplayReport
};

/// How the job replays: a port has none of the ops that made the model's arguments, so both sides begin from what was
/// recorded.
ReplayOptions replay_options(Precision precision);

/// Dtype, shape and bits.
bool bitwise_equal(const at::Tensor& a, const at::Tensor& b);

/// The recorded values where stored, replayed from the recorded values of the marked boundaries before where not. Where
/// the replay does not reproduce a stored value bitwise (another CPU than the recording's), it is repeated with one
/// thread and without oneDNN to widen the null.
ReferenceValues recorded_values(const Dump& dump, const Program& program, const std::vector<bool>& marked);

/// The program under `precision` (fp32, fp64) from its recorded leaves alone.
ReferenceValues replayed_values(const Dump& dump, const Program& program, const std::vector<bool>& marked,
                                Precision precision);

/// The yardstick: fp64 results of each marked boundary on the *recorded* values of the marked ones before it, so
/// || recorded - this || is the rounding that the reference itself committed at that op.
std::map<size_t, at::Tensor> fp64_on_given(const Dump& dump, const Program& program,
                                           const std::map<size_t, at::Tensor>& given);

}  // namespace parity
