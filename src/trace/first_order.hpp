// How changes at single ops move a later value, to first order: one run forwards and, for each direction asked about,
// one backwards, however many changes there are. A first look at thousands of changes whose own runs would take hours.
//
// A change that turns the results of op i from y into y + e moves the last value by J e, where J is the derivative of
// all that follows. Its part along a direction r is <r, J e> = <J^T r, e>: J^T r comes from autograd for all ops at
// once, e from the changed op alone. The program is taken in pieces from the end, each run again with a graph, so that
// memory holds the values between the pieces and the graph of one.
#pragma once
#include "trace/replay.hpp"
#include "trace/rewrite.hpp"

namespace parity {

struct FirstOrderTask {
  std::shared_ptr<const ProgramPart> part;  // its one boundary is the last value
  std::map<int64_t, at::Tensor> given;      // as in ReplayOptions
  Precision precision = Precision::fp32;
  std::vector<at::Tensor> directions;      // of the last value's shape
  int64_t piece_bytes = int64_t{1} << 28;  // values computed in one piece, unless more hang together
};

/// One number a direction for each change; nullopt where a change has no first order: it cannot be put in, touches
/// integers or memory that is written in place, or reaches over a piece. `changes` without roundings, ascending by
/// their first op. Throws Error when the part cannot be run or differentiated.
std::vector<std::optional<std::vector<double>>> first_order(const Dump& dump, const Program& program,
                                                            const FirstOrderTask& task,
                                                            const std::vector<Deviation>& changes);

}  // namespace parity
