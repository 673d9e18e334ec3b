// What the reference computes by itself, once as recorded and once in fp64: what other tools compare a port with.
#pragma once
#include <map>

#include "jobs/sides.hpp"
#include "selftest/peer_rules.hpp"

namespace parity {

struct OwnValue {
  at::Tensor recorded, oracle;
};
using OwnRun = std::map<size_t, OwnValue>;  // by boundary; floating ones only

/// Replays the whole program on its recorded leaves. Throws Error as `replay_in_step`.
OwnRun run_own(const Dump& dump, const Program& program);

/// For each of `peer_rules()`: does every paired floating tensor of the candidate pass it? A shape or a kind of number
/// that differs fails all, as every one of these tools stops at it.
std::vector<bool> peer_verdicts(const Sides& sides, const OwnRun& own);

}  // namespace parity
