// A batch of samples of several lengths, with padding, and the same samples each in a call of its own.
#pragma once
#include <optional>
#include <vector>

#include "calls/call_shapes.hpp"
#include "calls/padding_tokens.hpp"
#include "calls/permutation.hpp"
#include "trace/program.hpp"

namespace parity {

/// Of one kind of sequence: a text's tokens, a text's and an image's.
struct SequenceLengths {
  int64_t padded = 0;           // of each sample with padding
  std::vector<int64_t> tokens;  // and without, by call

  auto operator<=>(const SequenceLengths&) const = default;
};

/// Where the calls of the side that pads nothing lie in the other's batch; each vector by call.
struct RaggedBatch {
  bool of_port = false;         // the port has the batch; false: the reference
  int64_t padded = 0;           // tokens of each sample with padding
  std::vector<int64_t> tokens;  // and without
  Permutation samples;
  std::vector<bool> in_front;           // the padding comes first
  bool by_step = false;                 // a step of each sample, then the next; else all of a sample before the next
  std::vector<SequenceLengths> also{};  // those of other sequences, whose padding lies alike

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  const Calls& batch(const CallShapes& path) const { return of_port ? path.port : path.reference; }
  const Calls& single(const CallShapes& path) const { return of_port ? path.reference : path.port; }
  /// The calls with one sample each, of `times`, of what the batch's side has in call `c` of `once`; empty: they are
  /// not as many.
  std::vector<size_t> calls_of(size_t once, size_t times, size_t c) const;
  std::vector<size_t> calls_of(const CallShapes& path, size_t c) const {
    return calls_of(batch(path).times, single(path).times, c);
  }
};

/// A call's shape, and the batch's without its samples; empty: the first axis holds none.
struct WithoutBatch {
  Shape whole, part;
};
WithoutBatch without_batch(const Shape& whole, const Shape& part, int64_t samples);

/// The part of the batch, axis by axis, that a value of this shape is: a sample's tokens, or its last one alone.
/// nullopt: it does not fit.
std::optional<std::vector<AxisPart>> place_in_batch(const RaggedBatch& batch, size_t call, const Shape& whole,
                                                    const Shape& part);

/// Those of all calls; no parts: one does not fit. They lie one behind the other along the axis of the tokens, or of
/// the batch; of scores, which have two of tokens, each is a row.
PackedParts places_in_batch(const RaggedBatch& batch, const Shape& whole, const std::vector<Shape>& parts);

/// The same as far as the batch's shape alone tells: along axes of as many tokens as with padding, never the last (of
/// features) unless another is as long (scores); all tokens, or each sample's `last` alone. No parts: the first axis
/// holds no samples.
PackedParts places_by_shape(const RaggedBatch& batch, const Shape& whole, bool last = false);

/// Along which shapes differ: one axis, or several alike.
struct RaggedAxis {
  int64_t axis = 0;              // along which values can be packed: `PackedParts::axis`
  std::vector<int64_t> extents;  // by shape; empty: they are equal
};
/// nullopt: they differ otherwise.
std::optional<RaggedAxis> ragged_axis(const std::vector<Shape>& shapes);

}  // namespace parity
