#include "calls/padding_tokens.hpp"

#include <algorithm>
#include <utility>

namespace parity {
namespace {

// Along an axis: the tokens, or of a joint sequence what lies before its padding and behind; empty: it has none.
std::vector<AxisPart> parts_along(size_t axis, int64_t with, int64_t without, const Padding& padding) {
  const int64_t rows = with / padding.padded, others = others_beside(with, without, padding);
  if (rows * padding.padded == with && rows * padding.tokens == without) return {part_along(axis, with, padding)};
  const auto hole = padding.joint.find(others);
  if (hole == padding.joint.end()) return {};
  const auto at = static_cast<int64_t>(axis);
  std::vector<AxisPart> parts{{at, with, 0, hole->second},
                              {at, with, hole->second + padding.padded - padding.tokens, without - hole->second}};
  std::erase_if(parts, [](const AxisPart& part) { return part.length == 0; });
  return parts;
}

// Of an axis in two parts, it alone: one behind the other. No parts: several axes, one of them in two parts.
PackedParts of_axes(const std::vector<std::vector<AxisPart>>& axes) {
  if (axes.empty()) return {};
  if (axes.size() == 1 && axes[0].size() == 2) return {{{axes[0][0]}, {axes[0][1]}}, axes[0][0].axis};
  PackedParts packed{{{}}};
  for (const auto& parts : axes) {
    if (parts.size() != 1) return {};
    packed.parts[0].push_back(parts[0]);
  }
  return packed;
}

}  // namespace

int64_t others_beside(int64_t padded, int64_t extent, const Padding& padding) {
  const int64_t others = padded - padding.padded;
  return others > 0 && extent == padding.tokens + others ? others : 0;
}

AxisPart part_along(size_t axis, int64_t extent, const Padding& padding) {
  const int64_t all = extent / padding.padded, outer = padding.outermost ? 1 : padding.batch;
  const int64_t rows = all % outer == 0 ? all / outer : 1;  // inside each token's
  const int64_t before = padding.in_front ? padding.padded - padding.tokens : 0;
  return {static_cast<int64_t>(axis), rows * padding.padded, rows * before, rows * padding.tokens};
}

PackedParts tokens_of(const Shape& padded, const Shape& shape, const Padding& padding) {
  std::vector<std::vector<AxisPart>> axes;
  size_t joint = 0;
  const size_t lacking = padded.size() - std::min(padded.size(), shape.size());  // outermost axes of the other
  for (size_t axis = lacking; axis < padded.size(); ++axis) {
    const int64_t with = padded[axis], without = shape[axis + shape.size() - padded.size()];
    if (with == without || with == 1 || without == 1) continue;
    axes.push_back(parts_along(axis, with, without, padding));
    if (axes.back().empty()) return {};
    joint += others_beside(with, without, padding) > 0;
  }
  return joint == 0 || joint == axes.size() ? of_axes(axes) : PackedParts();  // scores over the tokens and a sink
}

PackedParts tokens_between(const Shape& reference, const Shape& port, const Padding& padding) {
  return padding.of_port ? tokens_of(port, reference, padding) : tokens_of(reference, port, padding);
}

Padding with_joint(const Shape& reference, const Shape& port, Padding padding) {
  const Shape &padded = padding.of_port ? port : reference, &other = padding.of_port ? reference : port;
  for (size_t back = 1; back <= std::min(padded.size(), other.size()); ++back) {
    const int64_t with = padded[padded.size() - back], without = other[other.size() - back];
    if (const int64_t others = others_beside(with, without, padding)) padding.joint.emplace(others, without);
  }
  return padding;
}

bool padded_otherwise(const Shape& padded, const Shape& shape, const Padding& padding) {
  if (padded.size() != shape.size() || !tokens_of(padded, shape, padding).parts.empty()) return false;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (padded[axis] - shape[axis] == padding.padded - padding.tokens) return true;
  return false;
}

PackedParts tokens_of(const Shape& padded, const Padding& padding) {
  std::vector<std::vector<AxisPart>> axes;
  for (size_t axis = 0; axis < padded.size(); ++axis) {
    const bool last = axis + 1 == padded.size() && padded.size() > 1;
    if (padded[axis] < padding.padded || (last && axes.empty())) continue;
    auto parts = parts_along(axis, padded[axis], padded[axis] - padding.padded + padding.tokens, padding);
    if (!parts.empty()) axes.push_back(std::move(parts));
  }
  if (axes.empty() && padded.size() == 2 && padded[0] > 0 && padded[0] % padding.padded == 0)
    axes.push_back({part_along(0, padded[0], padding)});
  return of_axes(axes);
}

Shape without_padding(const Shape& padded, const Padding& padding) {
  const PackedParts tokens = tokens_of(padded, padding);
  return tokens.parts.empty() ? padded : packed_shape(padded, tokens);
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
