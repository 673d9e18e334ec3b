// Several replays of one program in step: the same boundary is reached by all of them before any goes on, so that what
// they computed can be compared there and never has to be stored. Variant runs go beside a replay.
#pragma once
#include <limits>
#include <vector>

#include "trace/replay.hpp"
#include "trace/rewrite.hpp"

namespace parity {

/// A deviation's value at a boundary that its rewrites reach.
struct DeviatingValue {
  size_t deviation = 0;  // number, in the order in which `Deviations` handed them out
  at::Tensor value;
};

struct BoundaryEvent {
  size_t boundary = 0;
  std::vector<at::Tensor> computed;  // one a replay, valid during the call only
  std::vector<DeviatingValue> deviating;
};

/// One a replay: the value to go on from; nullopt leaves the computed one. Deviations go on from their replay's.
using Replacements = std::vector<std::optional<at::Tensor>>;
using EventVisitor = std::function<Replacements(const BoundaryEvent&)>;

/// The deviations to be started at op `op`; each must rewrite that op, and later ones only besides.
using DeviationSource = std::function<std::vector<Deviation>(int op)>;

/// Called after op `op` has run in the first lane; `value` gives that lane's values.
using OpObserver = std::function<void(int op, const std::function<at::Tensor(int64_t id)>& value)>;

/// Variant runs beside the replays, and what they may hold.
struct Variants {
  DeviationSource start;    // nullptr: none
  std::vector<bool> worth;  // ops that variant runs compute, the others cannot matter; empty: all
  int64_t most_bytes = std::numeric_limits<int64_t>::max();
  std::function<void(size_t deviation)> give_up;  // told of each that was dropped to keep within `most_bytes`

  Variants() = default;
  Variants(DeviationSource source) : start(std::move(source)) {}  // NOLINT(google-explicit-constructor)
};

/// Runs the replays op by op. All options must agree on [begin, end) or on the part. Memory: the live values of each
/// replay, and of each variant run what differs from its replay until everything that differs has been replaced or
/// dropped: where that exceeds `most_bytes`, the variant runs started last are given up. Throws Error as `replay`.
std::vector<ReplayReport> replay_in_step(const Dump& dump, const Program& program,
                                         const std::vector<ReplayOptions>& lanes, const EventVisitor& visit,
                                         const Variants& variants = {}, const OpObserver& observer = nullptr);

}  // namespace parity
