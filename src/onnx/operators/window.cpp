#include "onnx/operators/window.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace parity::onnx {
namespace {

std::vector<int64_t> per_axis(const Call& call, const char* attribute, size_t axes, int64_t otherwise) {
  std::vector<int64_t> numbers = call.integers(attribute, std::vector<int64_t>(axes, otherwise));
  if (numbers.size() != axes)
    throw Error(fmt::format("its attribute '{}' has {} numbers for {} axes", attribute, numbers.size(), axes));
  return numbers;
}

void set_pads(Window& window, const Call& call, at::IntArrayRef spatial) {
  const size_t axes = window.axes();
  const std::string automatic = call.text("auto_pad", "NOTSET");
  window.before.assign(axes, 0), window.after.assign(axes, 0);
  if (automatic == "NOTSET") {
    const std::vector<int64_t> pads = per_axis(call, "pads", 2 * axes, 0);
    window.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(axes));
    window.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(axes), pads.end());
  } else if (automatic !=
             "VALID") {  // as many windows as the stride fits into the input, upper: the odd one at the end
    for (size_t i = 0; i < axes; ++i) {
      const int64_t windows = (spatial[i] + window.stride[i] - 1) / window.stride[i];
      const int64_t total = std::max<int64_t>(0, (windows - 1) * window.stride[i] + window.reach(i) - spatial[i]);
      window.before[i] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      window.after[i] = total - window.before[i];
    }
  }
}

int64_t count_of(const Window& window, size_t axis, int64_t size, bool ceil) {
  const int64_t room = size + window.before[axis] + window.after[axis] - window.reach(axis);
  if (room < 0) throw Error("its window is larger than what it steps over");
  const int64_t stride = window.stride[axis];
  int64_t count = (ceil ? room + stride - 1 : room) / stride + 1;
  if (ceil && (count - 1) * stride >= size + window.before[axis]) --count;  // it would begin in the padding at the end
  return count;
}

}  // namespace

Window window_of(const Call& call, at::IntArrayRef input, std::vector<int64_t> size) {
  Window window;
  window.size = std::move(size);
  const size_t axes = window.axes();
  if (input.size() != axes + 2)
    throw Error(fmt::format("it has {} axes to step over in an input of {}", axes, input.size()));
  window.stride = per_axis(call, "strides", axes, 1);
  window.dilation = per_axis(call, "dilations", axes, 1);
  for (size_t i = 0; i < axes; ++i)
    if (window.size[i] < 1 || window.stride[i] < 1 || window.dilation[i] < 1)
      throw Error("its window, strides and dilations are not all positive");
  const at::IntArrayRef spatial = input.slice(2);
  set_pads(window, call, spatial);
  const bool ceil = call.flag("ceil_mode");
  for (size_t i = 0; i < axes; ++i) window.count.push_back(count_of(window, i, spatial[i], ceil));
  return window;
}

at::Tensor padded(const at::Tensor& input, const Window& window, double value) {
  std::vector<int64_t> pads;  // ATen's order: the last axis first
  bool any = false;
  for (size_t i = window.axes(); i-- > 0;) {
    const int64_t reached = (window.count[i] - 1) * window.stride[i] + window.reach(i);
    const int64_t after = reached - input.size(static_cast<int64_t>(i) + 2) - window.before[i];
    pads.insert(pads.end(), {window.before[i], std::max<int64_t>(0, after)});
    any = any || window.before[i] != 0 || after > 0;
  }
  return any ? at::constant_pad_nd(input, pads, value) : input;
}

}  // namespace parity::onnx
