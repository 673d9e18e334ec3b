#include "jobs/propagation.hpp"

#include <algorithm>

#include "jobs/limits.hpp"
#include "jobs/rows.hpp"
#include "judge/model_limits.hpp"
#include "measure/measure.hpp"
#include "trace/lanes.hpp"

namespace parity {
namespace {

double error_of(const at::Tensor& truth, const at::Tensor& value) {
  return measure_against_oracle(truth, value, value).reference_error.value_or(0);
}

bool runs_differ(const Values& reference, const Values& free) {
  return std::any_of(free.begin(), free.end(), [&](const auto& value) {
    const auto there = reference.find(value.first);
    return there != reference.end() && !bitwise_equal(there->second, value.second);
  });
}

// Boundaries that recorded values of an opaque op went into since the marked ones before them: fp64 on other inputs
// would go on from the reference's.
std::vector<bool> behind_opaque(const Program& program, const std::vector<bool>& marked) {
  std::vector<bool> behind(program.boundaries.size());
  const bool any = std::any_of(program.ops.begin(), program.ops.end(), [](const Op& op) { return !op.opaque.empty(); });
  if (!any) return behind;
  const auto since = program.ops_since(marked);
  for (size_t b = 0; b < behind.size(); ++b)
    behind[b] =
        std::any_of(since[b].begin(), since[b].end(), [&](size_t op) { return !program.ops[op].opaque.empty(); });
  return behind;
}

std::map<size_t, Stats> port_on_own(const Dump& dump, const Program& program, const std::vector<bool>& marked,
                                    const Values& free) {
  std::map<size_t, Stats> own;
  const auto opaque = behind_opaque(program, marked);
  replay(dump, program, replay_options(Precision::fp64),
         [&](size_t b, const at::Tensor& computed) -> std::optional<at::Tensor> {
           const auto value = free.find(b);
           if (value == free.end() || value->second.sizes() != computed.sizes()) return std::nullopt;
           if (!opaque[b]) own[b] = measure_sums(computed, value->second);
           return value->second;
         });
  return own;
}

// Two lanes an arithmetic, in step: the program run free in it, and fp64 going on from its values.
std::map<size_t, FreeNull> program_on_own(const Dump& dump, const Program& program, const std::vector<bool>& marked,
                                          Precision precision, const Values& reference,
                                          std::span<const Arithmetic> arithmetics) {
  std::vector<ReplayOptions> lanes;
  for (const Arithmetic arithmetic : arithmetics) {
    lanes.push_back(replay_options(precision));
    lanes.back().arithmetic = arithmetic;
    lanes.push_back(replay_options(Precision::fp64));
  }
  std::map<size_t, FreeNull> null;
  replay_in_step(dump, program, lanes, [&](const BoundaryEvent& event) -> Replacements {
    const size_t b = event.boundary;
    const auto recorded = reference.find(b);
    if (!marked[b] || recorded == reference.end()) return {};
    Replacements next(lanes.size());
    for (size_t l = 0; l < lanes.size(); l += 2) {
      const at::Tensor &value = event.computed[l], &truth = event.computed[l + 1];
      null[b].own = std::max(null[b].own, error_of(truth, value));
      null[b].moved = std::max(null[b].moved, error_of(recorded->second, value));
      ++null[b].runs;
      next[l + 1] = value;
    }
    return next;
  });
  return null;
}

}  // namespace

OwnInputs on_own_inputs(const Dump& dump, const Program& program, const std::vector<bool>& marked, Precision precision,
                        const Values& reference, const Values& free, std::span<const Arithmetic> null) {
  OwnInputs own;
  if (!runs_differ(reference, free)) return own;
  own.port = port_on_own(dump, program, marked, free);
  if (precision != Precision::fp64 && !null.empty())
    own.reference = program_on_own(dump, program, marked, precision, reference, null);
  return own;
}

std::map<size_t, double> largest_amplification(const std::function<std::unique_ptr<PortedModel>()>& model,
                                               const Program& program, const Pairing& pairing, const Values& oracle) {
  std::map<size_t, double> largest;
  for (int draw = 0; draw < kPerturbedRuns; ++draw)
    for (const auto& [b, moved] : run_forced(*model(), program, pairing, oracle, kPerturbation, draw)) {
      const auto truth = oracle.find(b);
      if (truth == oracle.end() || truth->second.sizes() != moved.sizes()) continue;
      if (const auto change = measure_against_oracle(truth->second, moved, moved).reference_error)
        largest[b] = std::max(largest[b], *change / kPerturbation);
    }
  return largest;
}

}  // namespace parity
