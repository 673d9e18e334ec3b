// A part of a program taken apart where few values cross. Private to src/trace.
#pragma once
#include "trace/flow.hpp"
#include "trace/replay.hpp"

namespace parity {

struct Piece {
  std::vector<size_t> ops;  // indices into Program::ops, ascending
  std::vector<int64_t> enters,
      leaves;  // values made before it that it or a later piece reads; made by then, read later
};

/// Pieces whose ops make about `bytes` of values each, cut where the fewest bytes cross and no memory that crosses is
/// written to afterwards; inside none of `spans` (first and last op of what hangs together) unless a piece would grow
/// to eight times that. What is in `given` crosses nothing.
std::vector<Piece> pieces_of(const Program& program, const Flow& flow, const ProgramPart& part,
                             const std::map<int64_t, at::Tensor>& given,
                             const std::vector<std::pair<size_t, size_t>>& spans, int64_t bytes);

}  // namespace parity
