// What convolutions and poolings have in common: windows that step over the axes after the first two.
#pragma once
#include "onnx/operator.hpp"

namespace parity::onnx {

/// By spatial axis.
struct Window {
  std::vector<int64_t> size, stride, dilation, before, after;  // after: padding at the end
  std::vector<int64_t> count;  // windows, with ceil_mode and auto_pad taken into account

  size_t axes() const { return size.size(); }
  bool symmetric() const { return before == after; }
  int64_t reach(size_t axis) const { return dilation[axis] * (size[axis] - 1) + 1; }
};

/// Of a node with the attributes strides, dilations, pads, auto_pad and ceil_mode. `input`: all its axes. Throws Error
/// where they do not fit it.
Window window_of(const Call& call, at::IntArrayRef input, std::vector<int64_t> size);

/// `input` with as much padding as the windows reach: those that ceil_mode adds may reach beyond `after`.
at::Tensor padded(const at::Tensor& input, const Window& window, double value);

}  // namespace parity::onnx
