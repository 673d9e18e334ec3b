#include "calls/padding_tokens.hpp"

#include <algorithm>

namespace parity {

AxisPart part_along(size_t axis, int64_t extent, const Padding& padding) {
  const int64_t all = extent / padding.padded, outer = padding.outermost ? 1 : padding.batch;
  const int64_t rows = all % outer == 0 ? all / outer : 1;  // inside each token's
  const int64_t before = padding.in_front ? padding.padded - padding.tokens : 0;
  return {static_cast<int64_t>(axis), rows * padding.padded, rows * before, rows * padding.tokens};
}

std::vector<AxisPart> tokens_of(const Shape& padded, const Shape& shape, const Padding& padding) {
  std::vector<AxisPart> parts;
  const size_t lacking = padded.size() - std::min(padded.size(), shape.size());  // outermost axes of the other
  for (size_t axis = lacking; axis < padded.size(); ++axis) {
    const int64_t with = padded[axis], without = shape[axis + shape.size() - padded.size()];
    if (with == without || with == 1 || without == 1) continue;
    const int64_t rows = with / padding.padded;
    if (rows * padding.padded != with || rows * padding.tokens != without) return {};
    parts.push_back(part_along(axis, with, padding));
  }
  return parts;
}

bool padded_otherwise(const Shape& padded, const Shape& shape, const Padding& padding) {
  if (padded.size() != shape.size() || !tokens_of(padded, shape, padding).empty()) return false;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (padded[axis] - shape[axis] == padding.padded - padding.tokens) return true;
  return false;
}

std::vector<AxisPart> tokens_of(const Shape& padded, const Padding& padding) {
  std::vector<AxisPart> parts;
  for (size_t axis = 0; axis < padded.size(); ++axis) {
    const bool last = axis + 1 == padded.size() && padded.size() > 1;
    if (padded[axis] == padding.padded && (!last || !parts.empty()))
      parts.push_back(part_along(axis, padded[axis], padding));
  }
  if (parts.empty() && padded.size() == 2 && padded[0] % padding.padded == 0)
    parts.push_back(part_along(0, padded[0], padding));
  return parts;
}

Shape cut(const Shape& padded, const std::vector<AxisPart>& parts) {
  Shape shape = padded;
  for (const AxisPart& part : parts) shape[part.axis] = shape[part.axis] / part.of * part.length;
  return shape;
}

Shape packed_shape(const std::vector<Shape>& parts, int64_t axis) {
  Shape shape = parts.front();
  if (axis < 0) shape = {0};
  int64_t extent = 0;
  for (const Shape& part : parts) extent += axis < 0 ? c10::multiply_integers(part) : part[static_cast<size_t>(axis)];
  shape[static_cast<size_t>(std::max<int64_t>(axis, 0))] = extent;
  return shape;
}

Shape packed_shape(const Shape& whole, const PackedParts& packed) {
  std::vector<Shape> parts;
  for (const auto& part : packed.parts) parts.push_back(cut(whole, part));
  return packed_shape(parts, packed.axis);
}

AxisPart rest_of(const AxisPart& part) {
  return {part.axis, part.of, part.begin > 0 ? 0 : part.length, part.of - part.length};
}

}  // namespace parity
