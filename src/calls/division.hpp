// Which calls of one side are chunks of what the other side runs in one call.
#pragma once
#include <string>
#include <vector>

#include "calls/call_shapes.hpp"
#include "calls/division_calls.hpp"
#include "trace/program.hpp"

namespace parity {

/// A value that one side has whole and the other in chunks.
struct Chunks {
  bool own = false;              // of a name of the port's own
  std::string path;              // else the reference's
  std::vector<size_t> tensors;   // the port's: the whole, or a tensor a chunk, as they lie along the axis
  std::vector<int> calls;        // the reference's: that of the whole, or a call a chunk; -1: of none
  int64_t axis = 0;              // the one that is divided
  std::vector<int64_t> extents;  // along it; empty: every chunk may have the whole (RoPE's table)
  int64_t outer = 1;             // product of the whole's extents before the axis
  size_t pass = 0;
  int64_t rows = 1;  // of the batch, where batch and tokens are one axis; 0: divided otherwise than most
};

struct Division {
  bool of_port = true;           // the port runs in chunks; false: the reference does
  CallsOfChunks calls;           // `anew`: the other side runs all that came before anew in each call, without a cache
  std::vector<int64_t> extents;  // of the chunks: samples or tokens
  bool outermost = false;        // what is divided is so along its first axis: samples, or tokens before the batch
  std::vector<Chunks> chunks;    // by the port's first tensor, ascending
  std::vector<size_t> left_out;  // tensors of the port that have no whole: scores over a growing cache
};

/// Compares the shapes of paths that both sides have, call by call. A path is divided where its calls differ from the
/// other side's along one axis alone, and add up to it there; where the model calls a module several times, chunks
/// follow one another call for call, pass for pass. Of a name of the port's own, that its shape is none of the
/// reference's, whatever the order of its axes, and that joined or divided it is. `paths`: call_shapes of the two. What
/// divides most paths; several: all steps of a sample may come before the next sample's, or all samples of a step;
/// shapes alone do not tell. Empty: nothing is divided.
std::vector<Division> divisions(const Program& reference, std::vector<CallShapes> paths);

}  // namespace parity
