// The port's free run, op by op: what the gate of propagation is judged by (judge/propagation.hpp).
#pragma once
#include <array>
#include <map>
#include <span>
#include <vector>

#include "jobs/candidate_runs.hpp"
#include "jobs/reference_values.hpp"
#include "judge/propagation.hpp"
#include "models/model.hpp"

namespace parity {

/// By boundary; empty when the free run is bitwise the reference's.
struct OwnInputs {
  std::map<size_t, Stats> port;          // PropagationInput::own; boundaries behind opaque ops are left out
  std::map<size_t, FreeNull> reference;  // not for fp64, where nothing is rounded
};

/// Valid arithmetics of the recorded cast placement (trace/replay.hpp): this machine's kernels and others.
inline constexpr std::array kNullArithmetics{Arithmetic::kernel, Arithmetic::exact, Arithmetic::reordered};

/// Replays the program in fp64 going on from the port's free values at the marked boundaries, and the program free in
/// other valid arithmetic beside fp64 on its own values. Values of other shapes are left out.
OwnInputs on_own_inputs(const Dump& dump, const Program& program, const std::vector<bool>& marked, Precision precision,
                        const Values& reference, const Values& free,
                        std::span<const Arithmetic> null = kNullArithmetics);

/// The op's output's over its inputs' relative perturbation in fp64, by boundary: the largest of several runs of the
/// model with other random numbers. `model`: makes it in fp64; `oracle`: the reference in fp64.
std::map<size_t, double> largest_amplification(const std::function<std::unique_ptr<PortedModel>()>& model,
                                               const Program& program, const Pairing& pairing, const Values& oracle);

}  // namespace parity
