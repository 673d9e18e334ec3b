// Operators that cut tensors, join them, or add to their edges.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "onnx/operator.hpp"

namespace parity::onnx {
namespace {

Tensors concat(const Call& call) {
  if (!call.has("axis")) throw Error("its attribute 'axis' is missing");
  return {at::cat(call.all(), axis_in(call.integer("axis", 0), call[0].dim()))};
}

// Without sizes: equal ones, the last smaller where they do not divide the axis.
Tensors split(const Call& call) {
  const int64_t axis = axis_in(call.integer("axis", 0), call[0].dim()), size = call[0].size(axis);
  std::vector<int64_t> sizes = call.integers("split", 1).value_or(std::vector<int64_t>{});
  const auto parts = call.integer("num_outputs", static_cast<int64_t>(call.outputs()));
  if (sizes.empty() && parts > 0) {
    const int64_t each = (size + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<int64_t>(size - i * each, 0, each));
  }
  if (sizes.size() != call.outputs()) throw Error("it has not one size for each output");
  return at::split_with_sizes(call[0], sizes, axis);
}

// Every step-th element of one axis from `start` on, before `end`: numpy's, in both directions.
at::Tensor cut(const at::Tensor& input, int64_t axis, int64_t start, int64_t end, int64_t step) {
  const int64_t size = input.size(axis);
  if (step == 0 || step == std::numeric_limits<int64_t>::min()) throw Error("its step is 0, or no number");
  const bool forward = step > 0;
  const auto place = [&](int64_t at) {
    const int64_t from_front = at < 0 ? std::max(at, -size - 1) + size : at;
    return forward ? std::clamp<int64_t>(from_front, 0, size) : std::clamp<int64_t>(from_front, -1, size - 1);
  };
  start = place(start), end = place(end);
  if (forward) return at::slice(input, axis, start, std::max(start, end), step);
  if (start <= end) return at::slice(input, axis, 0, 0);
  const int64_t count = (start - end - step - 1) / -step;  // step is negative
  const int64_t lowest = start + (count - 1) * step;
  return at::flip(at::slice(input, axis, lowest, start + 1, -step), {axis});
}

Tensors slice(const Call& call) {
  const std::vector<int64_t> starts = call.integers(1), ends = call.integers(2);
  std::vector<int64_t> axes, steps(starts.size(), 1);
  for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (call.has(3)) axes = call.integers(3);
  if (call.has(4)) steps = call.integers(4);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    throw Error("its starts, ends, axes and steps are not of one length");
  at::Tensor result = call[0];
  for (size_t i = 0; i < starts.size(); ++i)
    result = cut(result, axis_in(axes[i], result.dim()), starts[i], ends[i], steps[i]);
  return {result};
}

// Where each element of a padded axis comes from.
std::vector<int64_t> sources(const std::string& mode, int64_t size, int64_t before, int64_t after) {
  std::vector<int64_t> from;
  for (int64_t i = -before; i < size + after; ++i) {
    int64_t at = i;
    if (mode == "edge") {
      at = std::clamp<int64_t>(i, 0, size - 1);
    } else if (mode == "wrap") {
      at = (i % size + size) % size;
    } else {  // reflect: the edge itself is not repeated
      const int64_t period = std::max<int64_t>(1, 2 * (size - 1));
      at = (i % period + period) % period;
      at = at < size ? at : period - at;
    }
    from.push_back(at);
  }
  return from;
}

at::Tensor padded_along(const at::Tensor& input, const std::string& mode, int64_t axis, int64_t before, int64_t after) {
  at::Tensor kept = input;  // a negative padding takes away
  if (before < 0 || after < 0)
    kept = at::slice(kept, axis, std::max<int64_t>(0, -before), input.size(axis) - std::max<int64_t>(0, -after));
  before = std::max<int64_t>(0, before), after = std::max<int64_t>(0, after);
  if (before == 0 && after == 0) return kept;
  if (kept.size(axis) == 0) throw Error("it repeats an axis that is empty");
  return at::index_select(kept, axis, constant(sources(mode, kept.size(axis), before, after)));
}

Tensors pad(const Call& call) {
  const at::Tensor& input = call[0];
  const std::vector<int64_t> given = call.integers(1);
  std::vector<int64_t> axes(given.size() / 2);
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  if (call.has(3)) axes = call.integers(3);
  if (given.size() != 2 * axes.size()) throw Error("it has not two paddings for each axis");
  const std::string mode = call.text("mode", "constant");
  const auto rank = static_cast<size_t>(input.dim());
  std::vector<int64_t> pads(2 * rank, 0);  // ATen's order: the last axis first
  at::Tensor result = input;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axis_in(axes[i], input.dim()), before = given[i], after = given[axes.size() + i];
    pads[2 * (rank - 1 - static_cast<size_t>(axis))] = before;
    pads[2 * (rank - 1 - static_cast<size_t>(axis)) + 1] = after;
    if (mode != "constant") result = padded_along(result, mode, axis, before, after);
  }
  if (mode != "constant") return {result};
  at::Scalar value = 0;
  if (call.has(2)) value = call.value(2);
  return {at::constant_pad_nd(input, pads, value)};
}

Tensors trilu(const Call& call) {
  const int64_t diagonal = call.has(1) ? call.integer(1) : 0;
  return {call.flag("upper", true) ? at::triu(call[0], diagonal) : at::tril(call[0], diagonal)};
}

constexpr LoweringRow kPieceRows[] = {
    {"Concat", concat}, {"Split", split}, {"Slice", slice}, {"Pad", pad}, {"Trilu", trilu},
};

}  // namespace

std::span<const LoweringRow> pieces() { return kPieceRows; }

}  // namespace parity::onnx
