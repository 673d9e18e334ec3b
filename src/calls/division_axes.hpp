// Along which axis one shape is made of others.
#pragma once
#include <optional>
#include <vector>

#include "calls/call_shapes.hpp"

namespace parity {

using Extents = std::vector<int64_t>;

struct DividedAxis {
  size_t axis;
  Extents extents;  // of the chunks along it
};

int64_t sum_of(const Extents& extents);

/// The one axis along which these differ from `from`, and their extents along it; nullopt: none, or several.
std::optional<DividedAxis> differing_axis(const std::vector<Shape>& shapes, const Shape& from);

/// The one axis along which the chunks differ from the whole, and add up to it.
std::optional<DividedAxis> axis_of_chunks(const std::vector<Shape>& chunks, const Shape& whole);

/// The port's axes lie in another order than the reference's: the first of the port's axes along which the chunks, or
/// the whole if that is the port's, are then of one another's extents.
std::optional<DividedAxis> axis_laid_out_otherwise(const std::vector<Shape>& chunks, const Shape& whole, bool of_port);

/// An axis, not the last, along which the chunks add up to a shape that the reference has, or to its extents.
std::optional<DividedAxis> axis_to_join(const std::vector<Shape>& chunks, const KnownShapes& known);

/// An axis, not the last, along which chunks in the ratio of `usual` each have extents that the reference has; the
/// first one last of all, unless the division is `outermost`: a batch may have as many samples as there are tokens.
std::optional<DividedAxis> axis_to_split(const Shape& whole, const Extents& usual, bool outermost,
                                         const KnownShapes& known);

/// The one axis along which the chunks are what is last of each of the whole's parts, `usual` times a number of rows
/// long; `extents`: what is left out and what is taken, in turn. The logits of the last token of a prompt alone.
std::optional<DividedAxis> axis_of_last(const std::vector<Shape>& chunks, const Shape& whole, const Extents& usual);

/// The same of an axis, not the last, where one of each part has extents that the reference has.
std::optional<DividedAxis> axis_to_last(const Shape& whole, const Extents& usual, const KnownShapes& known);

/// The axis along which the port's values of the last token of each chunk are joined to those of the whole, which has
/// all tokens or the last one alone: that of the samples. No extents: the chunks are of tokens, and the last has it.
std::optional<DividedAxis> axis_of_last_rows(const std::vector<Shape>& chunks, const Shape& whole);

/// A product on (batch x tokens, dim) divides its rows batch by batch: so many times the first of the usual extents;
/// 0: otherwise.
int64_t rows_of(const Extents& extents, const Extents& usual);

}  // namespace parity
