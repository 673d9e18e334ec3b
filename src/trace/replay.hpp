// Running a recorded program again through LibTorch's boxed dispatcher: as recorded, in fp32 or in fp64, on recorded or
// given values.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/precision.hpp"
#include "trace/program.hpp"

namespace parity {

/// Which arithmetic stands behind each op of a replay in the recorded dtypes: valid implementations of the same cast
/// placement, chosen to span what libraries and machines do. Their distances from each other are the null distribution
/// of a comparison. Sums of half-width floats are taken in fp32 everywhere and rounded once.
///   kernel       LibTorch's kernel for the recorded dtypes
///   exact        the op in fp64 on the same (rounded) arguments, its result rounded once to the recorded dtype
///   reordered    sums in the opposite order; attention as products and softmax, every step rounded to its own dtype
///   split        sums in two halves; norms in two passes; eager attention with softmax in fp32 and P rounded
///   blocked      sums in blocks one after the other; norms in one pass; tiled attention with P rounded
///   pairwise     sums as a tree; a root and a division for a reciprocal root; tiled attention, nothing rounded between
///   interleaved  four interleaved partial sums; gains folded into a norm's scale; attention as ATen's math path
///   transposed   products with their operands exchanged; attention in fp32 throughout
enum class Arithmetic { kernel, exact, reordered, split, blocked, pairwise, interleaved, transposed };

/// A part of a program that runs alone, on values given to it.
struct ProgramPart {
  std::vector<size_t> ops;         // indices into Program::ops, ascending
  std::vector<size_t> boundaries;  // visited ones, ascending; each a value that these ops make
  std::vector<int64_t> kept;       // values that stay alive to the end
};

struct ReplayOptions {
  Precision precision = Precision::recorded;
  Arithmetic arithmetic = Arithmetic::kernel;  // applies to Precision::recorded and fp32
  int begin = 0, end = -1;  // ops [begin, end); -1: to the last. A begin > 0 takes what it needs from stored values
  std::map<int64_t, at::Tensor> given;  // values to use instead of the recorded leaves, by value id
  /// Every call of the model itself begins from its recorded arguments in the replay's dtypes, also those that recorded
  /// ops outside of it computed (`model(latents.to(torch.bfloat16))` inside the recording, a scheduler's step between
  /// two calls): what a re-implementation is given, which has no such ops.
  bool recorded_inputs = false;
  std::shared_ptr<const ProgramPart> part;  // instead of [begin, end): what these ops read is a leaf, given, or theirs
  /// The replay in step with this one whose results are taken where an op does not run on the values that were given
  /// at boundaries: places out of range.
  std::optional<size_t> instead{};
  bool differentiable = false;  // a part's ops leave a graph for autograd when the caller's gradient mode is on
};

/// A data-dependent op (nonzero: which tokens an expert gets) whose recorded result was taken, although the values at
/// hand select otherwise.
struct OtherSelection {
  size_t op = 0;                       // index into Program::ops
  int64_t recorded = 0, selected = 0;  // rows; as many where only others are meant
};

struct ReplayReport {
  std::vector<std::string> opaque;         // "path (op): reason" for every op whose stored values were taken
  std::vector<std::string> lowered;        // fp64 only: ops whose result was not fp64 although a float, and was raised
                                           // afterwards: the oracle has a floor there
  std::vector<OtherSelection> selections;  // Precision::recorded with Arithmetic::kernel only
  std::vector<std::string> taken;          // what was said of each op whose results were taken from another replay
};

/// Called at every boundary, in order, with the value the replay computed. Returning a tensor makes the replay go on
/// from it (converted to the replay's dtype there); nullopt leaves it alone. The tensor is only valid (unaliased by
/// later in-place ops) during the call.
using BoundaryVisitor = std::function<std::optional<at::Tensor>(size_t boundary, const at::Tensor& computed)>;

/// One linear pass; memory is bounded by live values (each is dropped after its last use).
/// Throws Error naming the op when an operator is unknown to this LibTorch or an argument does not fit its schema.
ReplayReport replay(const Dump& dump, const Program& program, const ReplayOptions& options,
                    const BoundaryVisitor& visit);

}  // namespace parity
