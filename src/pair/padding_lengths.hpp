// How many tokens one side has, and the other with padding.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "pair/call_shapes.hpp"
#include "pair/candidate.hpp"
#include "pair/name_map.hpp"
#include "trace/program.hpp"

namespace parity {

struct Padding {
  bool of_port = true;     // the port's tokens are padded; false: the reference's
  int64_t padded = 0;      // tokens with the padding
  int64_t tokens = 0;      // and without
  bool in_front = false;   // the padding comes first
  int64_t batch = 1;       // samples
  bool outermost = false;  // where one axis holds batch and tokens, the tokens are the outer ones

  auto operator<=>(const Padding&) const = default;
};

/// The tokens along the axes that are padded, if no other axis differs, but for those along which one of the two shapes
/// is broadcast; else empty.
std::vector<AxisPart> tokens_of(const Shape& padded, const Shape& shape, const Padding& padding);

/// The tokens along the axes that are padded, as far as a shape alone tells: those of so many elements, and the outer
/// one of two, if it is so many rows of a batch. Never the last (of features), unless another is as long (scores).
std::vector<AxisPart> tokens_of(const Shape& padded, const Padding& padding);

/// Is a shape by the padding longer along some axis, but not only the tokens' (scores over the tokens and a sink)?
bool padded_otherwise(const Shape& padded, const Shape& shape, const Padding& padding);

Shape cut(const Shape& padded, const std::vector<AxisPart>& parts);
at::Tensor cut_values(at::Tensor value, const std::vector<AxisPart>& parts);

/// What the part leaves.
AxisPart rest_of(const AxisPart& part);

struct RecordedSide {
  const Program* program = nullptr;
  const Dump* dump = nullptr;  // null: tensors alone
};

/// Shapes say how many tokens there are; the content of what is recorded first says whether the padding comes before or
/// behind, and whether it is one: rows that are all the same, or that an input of their side masks. Tokens that one
/// side lacks are none. `map` may be null.
std::optional<Padding> find_padding(const RecordedSide& reference, const RecordedSide& port,
                                    const std::vector<CandidateTensor>& tensors, const NameMap* map);

}  // namespace parity
