#include "calls/ragged_batch.hpp"

#include <algorithm>
#include <set>

namespace parity {
namespace {

// Is a shape that of all samples' rows, batch and tokens as one axis?
bool holds_rows(const RaggedBatch& batch, const Shape& shape) {
  return shape.size() > 1 && shape[0] == batch.size() * batch.padded;
}

// Along an axis, of sequences of these lengths: all tokens of a call or, `last`, the last one alone.
std::optional<AxisPart> place_along(int64_t extent, int64_t length, int64_t padded, int64_t tokens, bool in_front,
                                    bool last) {
  const int64_t each = extent / padded, before = in_front ? padded - tokens : 0;
  if (extent % padded != 0 || length != each * (last ? 1 : tokens)) return std::nullopt;
  return AxisPart{0, extent, (last ? before + tokens - 1 : before) * each, length};
}

std::optional<AxisPart> place_along(const RaggedBatch& batch, size_t call, int64_t extent, int64_t length) {
  const bool in_front = batch.in_front[call];
  for (const bool last : {true, false})
    if (auto place = place_along(extent, length, batch.padded, batch.tokens[call], in_front, last)) return place;
  for (const SequenceLengths& other : batch.also)
    if (auto place = place_along(extent, length, other.padded, other.tokens[call], in_front, false)) return place;
  return std::nullopt;
}

// The calls' shapes, as far as the batch's alone tells; empty: the first axis holds no samples.
std::vector<Shape> parts_by_shape(const RaggedBatch& batch, const Shape& whole) {
  std::vector<Shape> parts;
  if (whole.empty() || whole[0] == 0 || whole[0] % batch.size() != 0) return parts;
  for (const int64_t tokens : batch.tokens) {
    Shape& part = parts.emplace_back(whole);
    part[0] = holds_rows(batch, whole) ? tokens : whole[0] / batch.size();
    bool cut = false;
    for (size_t axis = 1; axis < whole.size(); ++axis)
      if (!holds_rows(batch, whole) && whole[axis] == batch.padded && (cut || axis + 1 < whole.size()))
        part[axis] = tokens, cut = true;
  }
  return parts;
}

}  // namespace

std::vector<size_t> RaggedBatch::calls_of(size_t once, size_t times, size_t c) const {
  if (once * tokens.size() != times) return {};
  std::vector<size_t> calls;
  for (size_t i = 0; i < tokens.size(); ++i) calls.push_back(by_step ? c * tokens.size() + i : i * once + c);
  return calls;
}

WithoutBatch without_batch(const Shape& whole, const Shape& part, int64_t samples) {
  if (whole.empty() || whole[0] == 0 || whole[0] % samples != 0) return {};
  Shape rest = whole;
  if (part.size() + 1 == whole.size() && whole[0] == samples)
    rest.erase(rest.begin());
  else if (part.size() == whole.size())
    rest[0] /= samples;
  else
    return {};
  return {rest, part};
}

std::optional<std::vector<AxisPart>> place_in_batch(const RaggedBatch& batch, size_t call, const Shape& whole,
                                                    const Shape& part) {
  const auto shapes = without_batch(whole, part, batch.size());
  if (shapes.whole.empty()) return std::nullopt;
  const auto sample = static_cast<int64_t>(batch.samples[call]);
  const int64_t rows = whole[0] / batch.size();  // of a sample
  std::vector<AxisPart> place{{0, whole[0], sample * rows, rows}};
  const size_t dropped = whole.size() - part.size();
  for (size_t axis = 0; axis < shapes.whole.size(); ++axis) {
    const int64_t extent = shapes.whole[axis], length = shapes.part[axis];
    if (extent == length) continue;
    auto along = place_along(batch, call, extent, length);
    if (!along) return std::nullopt;
    along->axis = static_cast<int64_t>(axis + dropped);
    if (along->axis == 0)  // batch and tokens are one axis
      place[0].begin += along->begin, place[0].length = length;
    else
      place.push_back(*along);
  }
  return place;
}

PackedParts places_in_batch(const RaggedBatch& batch, const Shape& whole, const std::vector<Shape>& parts) {
  PackedParts packed;
  std::set<int64_t> axes;  // of tokens
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto place = place_in_batch(batch, i, whole, parts[i]);
    if (!place) return {};
    for (const AxisPart& part : *place)
      if (part.axis > 0 || part.length != whole[0] / batch.size()) axes.insert(part.axis);
    packed.parts.push_back(*place);
  }
  packed.axis = axes.size() > 1 ? -1 : axes.empty() ? 0 : *axes.begin();
  return packed;
}

PackedParts places_by_shape(const RaggedBatch& batch, const Shape& whole, bool last) {
  std::vector<Shape> parts = parts_by_shape(batch, whole);
  for (size_t axis = 0; last && axis < whole.size(); ++axis) {
    const auto extent = [axis](const Shape& part) { return part[axis]; };
    if (!parts.empty() && std::ranges::equal(parts, batch.tokens, {}, extent))
      for (Shape& part : parts) part[axis] = 1;
  }
  return parts.empty() ? PackedParts() : places_in_batch(batch, whole, parts);
}

std::optional<RaggedAxis> ragged_axis(const std::vector<Shape>& shapes) {
  RaggedAxis found;
  for (size_t axis = 0; axis < shapes.front().size(); ++axis) {
    std::vector<int64_t> extents;
    for (const Shape& shape : shapes) {
      if (shape.size() != shapes.front().size()) return std::nullopt;
      extents.push_back(shape[axis]);
    }
    if (std::ranges::count(extents, extents[0]) == std::ssize(extents)) continue;
    if (!found.extents.empty() && found.extents != extents) return std::nullopt;
    found = {found.extents.empty() ? static_cast<int64_t>(axis) : -1, std::move(extents)};
  }
  return found;
}

}  // namespace parity
