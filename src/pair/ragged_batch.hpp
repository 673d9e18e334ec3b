// Samples of several lengths: one side runs them as one batch with padding, the other each in a call of its own.
#pragma once
#include <optional>
#include <vector>

#include "pair/call_shapes.hpp"
#include "pair/candidate.hpp"
#include "pair/padding_lengths.hpp"
#include "pair/permutation.hpp"
#include "trace/program.hpp"

namespace parity {

/// Where the calls of the side that pads nothing lie in the other's batch; each vector by call.
struct RaggedBatch {
  bool of_port = false;         // the port has the batch; false: the reference
  int64_t padded = 0;           // tokens of each sample with padding
  std::vector<int64_t> tokens;  // and without
  Permutation samples;
  std::vector<bool> in_front;  // the padding comes first

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  const Calls& batch(const CallShapes& path) const { return of_port ? path.port : path.reference; }
  const Calls& single(const CallShapes& path) const { return of_port ? path.reference : path.port; }
  /// The calls with one sample each of what the batch's side has in call `c`; empty: they are not as many.
  std::vector<size_t> calls_of(const CallShapes& path, size_t c) const;
};

/// The part of the batch, axis by axis, that a value of this shape is: a sample's tokens, or its last one alone.
/// nullopt: it does not fit.
std::optional<std::vector<AxisPart>> place_in_batch(const RaggedBatch& batch, size_t call, const Shape& whole,
                                                    const Shape& part);

/// Shapes say how many tokens each call has; the first values that both sides have say which sample it is and on which
/// side of it the padding lies; that it is padding an input that masks it, or rows that are all the same. `paths`:
/// call_shapes of the two.
std::optional<RaggedBatch> find_ragged_batch(const RecordedSide& reference, const RecordedSide& port,
                                             const std::vector<CandidateTensor>& tensors,
                                             const std::vector<CallShapes>& paths);

}  // namespace parity
