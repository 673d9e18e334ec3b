// The tokens of values that are longer by padding, along which axes and where.
#pragma once
#include <map>
#include <vector>

#include "calls/call_shapes.hpp"
#include "trace/program.hpp"

namespace parity {

struct Padding {
  bool of_port = true;     // the port's tokens are padded; false: the reference's
  int64_t padded = 0;      // tokens with the padding
  int64_t tokens = 0;      // and without
  bool in_front = false;   // the padding comes first
  int64_t batch = 1;       // samples
  bool outermost = false;  // where one axis holds batch and tokens, the tokens are the outer ones
  // Of joint sequences (a text's tokens and an image's): how many others lie along the axis, and how many of all come
  // before the padding.
  std::map<int64_t, int64_t> joint{};

  auto operator<=>(const Padding&) const = default;
};

/// Those along an axis of `extent` elements, which may hold a batch, the tokens and heads.
AxisPart part_along(size_t axis, int64_t extent, const Padding& padding);

/// How many others such an extent has beside the tokens, with the padding and without; 0: it is no joint sequence's.
int64_t others_beside(int64_t padded, int64_t extent, const Padding& padding);

/// The tokens along the axes that are padded, if no other axis differs, but for those along which one of the two shapes
/// is broadcast; else no parts. So of joint sequences, of whose padding the place is known.
PackedParts tokens_of(const Shape& padded, const Shape& shape, const Padding& padding);

/// Those of the side that is padded.
PackedParts tokens_between(const Shape& reference, const Shape& port, const Padding& padding);

/// This padding, and as if it came last in each joint sequence among these extents.
Padding with_joint(const Shape& reference, const Shape& port, Padding padding);

/// The tokens along the axes that are padded, as far as a shape alone tells: those of so many elements, and the outer
/// one of two, if it is so many rows of a batch; or those of joint sequences. Never the last (of features), unless
/// another is as long (scores).
PackedParts tokens_of(const Shape& padded, const Padding& padding);

/// What that leaves of it; the shape itself, if no tokens are told.
Shape without_padding(const Shape& padded, const Padding& padding);

/// Is a shape by the padding longer along some axis, but not only the tokens' (scores over the tokens and a sink)?
bool padded_otherwise(const Shape& padded, const Shape& shape, const Padding& padding);

Shape cut(const Shape& padded, const std::vector<AxisPart>& parts);

/// Of parts of these shapes, one behind the other along an axis (`PackedParts`), and of those of a value of this shape.
Shape packed_shape(const std::vector<Shape>& parts, int64_t axis);
Shape packed_shape(const Shape& whole, const PackedParts& packed);

/// What the part leaves.
AxisPart rest_of(const AxisPart& part);

}  // namespace parity
