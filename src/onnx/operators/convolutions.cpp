// Convolutions, and what turns them round.
#include <fmt/format.h>

#include "core/error.hpp"
#include "onnx/operators/window.hpp"

namespace parity::onnx {
namespace {

std::optional<at::Tensor> bias_of(const Call& call) { return call.has(2) ? std::optional(call[2]) : std::nullopt; }

std::vector<int64_t> kernel_of(const Call& call) {
  if (call[1].dim() < 3) throw Error("its kernel has less than three axes");
  return call[1].sizes().slice(2).vec();
}

Tensors conv(const Call& call) {
  const Window window = window_of(call, call[0].sizes(), kernel_of(call));
  const std::vector<int64_t> none(window.axes(), 0);
  const bool inside = window.symmetric();
  const at::Tensor input = inside ? call[0] : padded(call[0], window, 0);
  return {at::convolution(input, call[1], bias_of(call), window.stride, inside ? window.before : none, window.dilation,
                          /*transposed=*/false, none, call.integer("group", 1))};
}

struct Cropping {
  std::vector<int64_t> stride, dilation, beyond, before, after;  // beyond: output_padding
};

// ONNX's ConvTranspose: `output_shape` gives the padding, else `pads` the output's size.
Cropping cropping_of(const Call& call, const std::vector<int64_t>& kernel, at::IntArrayRef spatial) {
  const size_t axes = kernel.size();
  Cropping c{call.integers("strides", std::vector<int64_t>(axes, 1)),
             call.integers("dilations", std::vector<int64_t>(axes, 1)),
             call.integers("output_padding", std::vector<int64_t>(axes, 0)),
             {},
             {}};
  const std::vector<int64_t> pads = call.integers("pads", std::vector<int64_t>(2 * axes, 0));
  std::vector<int64_t> shape = call.integers("output_shape");
  const std::string automatic = call.text("auto_pad", "NOTSET");
  if (c.stride.size() != axes || c.dilation.size() != axes || c.beyond.size() != axes || pads.size() != 2 * axes)
    throw Error(fmt::format("its attributes do not fit {} axes", axes));
  for (size_t i = 0; i < axes; ++i) {
    const int64_t full = c.stride[i] * (spatial[i] - 1) + c.beyond[i] + (kernel[i] - 1) * c.dilation[i] + 1;
    int64_t total = pads[i] + pads[axes + i];
    const bool same = automatic.starts_with("SAME");
    if (!shape.empty() || same) {
      const int64_t wanted = shape.empty() ? spatial[i] * c.stride[i] : shape[shape.size() - axes + i];
      total = std::max<int64_t>(0, full - wanted);
      c.before.push_back(automatic == "SAME_UPPER" ? total / 2 : total - total / 2);
    } else {
      c.before.push_back(automatic == "VALID" ? 0 : pads[i]);
      if (automatic == "VALID") total = 0;
    }
    c.after.push_back(total - c.before.back());
  }
  return c;
}

Tensors conv_transpose(const Call& call) {
  const std::vector<int64_t> kernel = kernel_of(call);
  const Cropping c = cropping_of(call, kernel, call[0].sizes().slice(2));
  const bool inside = c.before == c.after;
  const std::vector<int64_t> none(kernel.size(), 0);
  at::Tensor full = at::convolution(call[0], call[1], bias_of(call), c.stride, inside ? c.before : none, c.dilation,
                                    /*transposed=*/true, inside ? c.beyond : none, call.integer("group", 1));
  if (inside) return {full};
  for (size_t i = 0; i < kernel.size(); ++i) {  // what output_padding adds has no product in it: the bias alone
    const auto axis = static_cast<int64_t>(i) + 2;
    if (c.beyond[i] > c.after[i])
      throw Error("its output_padding exceeds its padding at the end, which is not known here");
    full = at::slice(full, axis, c.before[i], full.size(axis) + c.beyond[i] - c.after[i]);
  }
  return {full};
}

constexpr LoweringRow kConvolutionRows[] = {
    {"Conv", conv},
    {"ConvTranspose", conv_transpose},
};

}  // namespace

std::span<const LoweringRow> convolutions() { return kConvolutionRows; }

}  // namespace parity::onnx
