#include "selftest/own_run.hpp"

#include "trace/lanes.hpp"

namespace parity {
namespace {

// Undefined when the axes do not fit: `compare` calls that a shape that differs.
at::Tensor aligned(const PortPair& pair, const CandidateTensor& tensor) {
  return pair.layout.fit_reference(tensor.load()).tensor;
}

}  // namespace

OwnRun run_own(const Dump& dump, const Program& program) {
  OwnRun own;
  std::vector<ReplayOptions> lanes(2);
  lanes[1].precision = Precision::fp64;
  replay_in_step(dump, program, lanes, [&](const Crossing& crossing) -> Replacements {
    const auto& computed = crossing.computed;
    if (program.boundaries[crossing.boundary].comparable && at::isFloatingType(computed[0].scalar_type()))
      own[crossing.boundary] = {computed[0].clone(), computed[1].clone()};
    return {};
  });
  return own;
}

std::vector<bool> peer_verdicts(const Sides& sides, const OwnRun& own) {
  const auto& rules = peer_rules();
  std::vector<bool> passes(rules.size(), true);
  for (const PortPair& pair : sides.pairing.pairs) {
    const auto value = own.find(pair.boundary);
    if (value == own.end()) continue;
    const auto& [recorded, oracle] = value->second;
    const at::Tensor candidate = aligned(pair, sides.candidate.tensors[pair.candidate]);
    const bool fits =
        candidate.defined() && candidate.sizes() == recorded.sizes() && at::isFloatingType(candidate.scalar_type());
    for (size_t i = 0; i < rules.size(); ++i)
      passes[i] = passes[i] && fits && rules[i].passes({recorded, candidate, oracle});
  }
  return passes;
}

}  // namespace parity
