// Where the padding of known lengths lies: values say so.
#pragma once
#include <optional>
#include <vector>

#include "calls/call_shapes.hpp"
#include "calls/padding_tokens.hpp"
#include "calls/recorded_side.hpp"
#include "pair/candidate.hpp"
#include "trace/program.hpp"

namespace parity {

/// What values are looked for in: the port's tensors of the reference's names, and those of names of its own.
struct PaddedSides {
  const RecordedSide reference, port;
  const std::vector<CandidateTensor>& tensors;
  const NamedTensors& named;
  const std::vector<size_t>& own;
};

/// Before the tokens or behind them, as the first values say that agree; and in joint sequences as the first of these
/// do. nullopt: it is no padding, neither masked by an input of its side nor the same in every row.
std::optional<Padding> padding_by_values(const Padding& lengths, const PaddedSides& sides);

}  // namespace parity
