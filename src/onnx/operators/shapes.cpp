// Operators that give the same numbers another shape, or tell a shape.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "onnx/operator.hpp"

namespace parity::onnx {
namespace {

Tensors same(const Call& call) { return {call[0]}; }

// Outside training all that is left of it, with a mask that drops nothing.
Tensors dropout(const Call& call) {
  if (call.outputs() < 2) return {call[0]};
  return {call[0], at::ones_like(call[0], at::kBool)};
}

// 0 keeps the axis at that place, unless `allowzero` says that it is meant.
Tensors reshape(const Call& call) {
  std::vector<int64_t> shape = call.integers(1);
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == 0 && !call.flag("allowzero")) {
      if (i >= static_cast<size_t>(call[0].dim())) throw Error("it keeps an axis that its input does not have");
      shape[i] = call[0].size(static_cast<int64_t>(i));
    }
  return {at::reshape(call[0], shape)};
}

Tensors flatten(const Call& call) {
  const int64_t given = call.integer("axis", 1), rank = call[0].dim();
  if (given < -rank || given > rank) throw Error(fmt::format("axis {} is none of {} axes", given, rank));
  const auto axis = static_cast<size_t>(given < 0 ? given + rank : given);
  const int64_t rows = c10::multiply_integers(call[0].sizes().slice(0, axis));
  return {at::reshape(call[0], {rows, c10::multiply_integers(call[0].sizes().slice(axis))})};
}

Tensors transpose(const Call& call) {
  std::vector<int64_t> order(static_cast<size_t>(call[0].dim()));
  std::iota(order.rbegin(), order.rend(), 0);
  return {at::permute(call[0], call.integers("perm", order))};
}

Tensors squeeze(const Call& call) {
  const auto given = call.integers("axes", 1);
  if (!given) return {at::squeeze(call[0])};
  for (const int64_t axis : *given)
    if (call[0].size(axis_in(axis, call[0].dim())) != 1) throw Error("it leaves out an axis that is not of size 1");
  return {at::squeeze(call[0], *given)};
}

// The axes are those of the result.
Tensors unsqueeze(const Call& call) {
  std::vector<int64_t> axes = call.integers("axes", 1).value_or(std::vector<int64_t>{});
  const int64_t rank = call[0].dim() + static_cast<int64_t>(axes.size());
  for (int64_t& axis : axes) axis = axis_in(axis, rank);
  std::sort(axes.begin(), axes.end());
  at::Tensor result = call[0];
  for (const int64_t axis : axes) result = at::unsqueeze(result, axis);
  return {result};
}

// Both shapes are broadcast: a 1 in the given one keeps the input's size.
Tensors expand(const Call& call) {
  const std::vector<int64_t> given = call.integers(1);
  std::vector<int64_t> shape = call[0].sizes().vec();
  while (shape.size() < given.size()) shape.insert(shape.begin(), 1);
  for (size_t i = 0; i < given.size(); ++i) {
    int64_t& size = shape[shape.size() - given.size() + i];
    if (given[i] != 1 && size != 1 && given[i] != size) throw Error("its shape does not fit its input");
    if (size == 1) size = given[i];
  }
  return {call[0].expand(shape)};
}

Tensors tile(const Call& call) {
  const std::vector<int64_t> repeats = call.integers(1);
  if (repeats.size() != static_cast<size_t>(call[0].dim())) throw Error("it has not one repeat for each axis");
  return {call[0].repeat(repeats)};
}

Tensors shape(const Call& call) {
  const int64_t rank = call[0].dim();
  const auto place = [&](int64_t given) { return std::clamp<int64_t>(given < 0 ? given + rank : given, 0, rank); };
  const int64_t start = place(call.integer("start", 0)), end = std::max(start, place(call.integer("end", rank)));
  return {constant(std::vector<int64_t>(call[0].sizes().begin() + start, call[0].sizes().begin() + end))};
}

Tensors size(const Call& call) { return {constant(std::vector<int64_t>{call[0].numel()}).reshape({})}; }

void require_images(const Call& call, int64_t block) {
  if (call[0].dim() != 4 || block < 1) throw Error("it is for four axes and a block size of at least 1");
}

Tensors depth_to_space(const Call& call) {
  const int64_t b = call.integer("blocksize", 0);
  require_images(call, b);
  const at::IntArrayRef s = call[0].sizes();  // (batch, channels, height, width)
  if (s[1] % (b * b) != 0) throw Error("its blocks do not divide its channels");
  const int64_t depth = s[1] / (b * b);
  const bool crd = call.text("mode", "DCR") == "CRD";
  const at::Tensor split = crd ? at::permute(at::reshape(call[0], {s[0], depth, b, b, s[2], s[3]}), {0, 1, 4, 2, 5, 3})
                               : at::permute(at::reshape(call[0], {s[0], b, b, depth, s[2], s[3]}), {0, 3, 4, 1, 5, 2});
  return {at::reshape(split, {s[0], depth, s[2] * b, s[3] * b})};
}

Tensors space_to_depth(const Call& call) {
  const int64_t b = call.integer("blocksize", 0);
  require_images(call, b);
  const at::IntArrayRef s = call[0].sizes();
  if (s[2] % b != 0 || s[3] % b != 0) throw Error("its blocks do not divide its height and width");
  const at::Tensor split = at::reshape(call[0], {s[0], s[1], s[2] / b, b, s[3] / b, b});
  return {at::reshape(at::permute(split, {0, 3, 5, 1, 2, 4}), {s[0], s[1] * b * b, s[2] / b, s[3] / b})};
}

constexpr LoweringRow kShapeRows[] = {
    {"Identity", same},
    {"Dropout", dropout},
    {"Reshape", reshape},
    {"Flatten", flatten},
    {"Transpose", transpose},
    {"Squeeze", squeeze},
    {"Unsqueeze", unsqueeze},
    {"Expand", expand},
    {"Tile", tile},
    {"Shape", shape},
    {"Size", size},
    {"DepthToSpace", depth_to_space},
    {"SpaceToDepth", space_to_depth},
};

}  // namespace

std::span<const LoweringRow> shapes() { return kShapeRows; }

}  // namespace parity::onnx
