// Poolings.
#include <fmt/format.h>

#include <limits>
#include <numeric>

#include "core/error.hpp"
#include "onnx/operators/window.hpp"
#include "trace/capture.hpp"

namespace parity::onnx {
namespace {

std::vector<int64_t> kernel_shape(const Call& call) {
  const std::vector<int64_t> kernel = call.integers("kernel_shape");
  if (kernel.empty() || kernel.size() > 3) throw Error("its kernel_shape is not of one to three axes");
  return kernel;
}

at::Tensor max_of(const at::Tensor& input, const Window& w, const std::vector<int64_t>& padding) {
  if (w.axes() == 1)  // not max_pool1d, which writes to memory behind the dispatcher
    return std::get<0>(at::max_pool1d_with_indices(input, w.size, w.stride, padding, w.dilation));
  if (w.axes() == 2) return at::max_pool2d(input, w.size, w.stride, padding, w.dilation);
  return at::max_pool3d(input, w.size, w.stride, padding, w.dilation);
}

at::Tensor mean_of(const at::Tensor& input, const Window& w, const std::vector<int64_t>& padding, bool padding_counts) {
  if (w.axes() == 1) return at::avg_pool1d(input, w.size, w.stride, padding, false, padding_counts);
  if (w.axes() == 2) return at::avg_pool2d(input, w.size, w.stride, padding, false, padding_counts);
  return at::avg_pool3d(input, w.size, w.stride, padding, false, padding_counts);
}

// ATen pads by the same on both sides, by half a window at most, and its own ceil_mode is not asked for.
bool is_plain(const Call& call, const Window& w) {
  bool plain = w.symmetric() && !call.flag("ceil_mode");
  for (size_t i = 0; i < w.axes(); ++i) plain = plain && w.before[i] <= w.size[i] / 2;
  return plain;
}

Tensors max_pool(const Call& call) {
  if (call.outputs() > 1) throw Error("its second output, the indices, is not known here");
  const Window w = window_of(call, call[0].sizes(), kernel_shape(call));
  if (!at::isFloatingType(call[0].scalar_type())) throw Error("its input is not of a floating dtype");
  if (is_plain(call, w)) return {max_of(call[0], w, w.before)};
  const std::vector<int64_t> none(w.axes(), 0);
  return {max_of(padded(call[0], w, -std::numeric_limits<double>::infinity()), w, none)};
}

// How many elements of the input (with `count_include_pad` of its padding as well) each window has, by axis: what
// ceil_mode adds beyond the padding never counts.
at::Tensor counts(const Call& call, const Window& w) {
  const bool pads = call.flag("count_include_pad");
  at::Tensor all;
  for (size_t i = 0; i < w.axes(); ++i) {
    const int64_t size = call[0].size(static_cast<int64_t>(i) + 2);
    const int64_t least = pads ? 0 : w.before[i], most = w.before[i] + size + (pads ? w.after[i] : 0);
    std::vector<double> along;
    for (int64_t n = 0; n < w.count[i]; ++n) {
      const int64_t begin = n * w.stride[i];
      along.push_back(static_cast<double>(std::min(begin + w.size[i], most) - std::max(begin, least)));
    }
    std::vector<int64_t> shape(w.axes(), 1);
    shape[i] = w.count[i];
    unseen([&] {
      const at::Tensor one = at::tensor(along, at::kDouble).reshape(shape);
      all = all.defined() ? all * one : one;
    });
  }
  return all;
}

Tensors average_pool(const Call& call) {
  const Window w = window_of(call, call[0].sizes(), kernel_shape(call));
  for (const int64_t step : w.dilation)
    if (step != 1) throw Error("its dilations are not 1, which is not known here");
  if (is_plain(call, w)) return {mean_of(call[0], w, w.before, call.flag("count_include_pad"))};
  const std::vector<int64_t> none(w.axes(), 0);
  const auto whole = static_cast<double>(c10::multiply_integers(w.size));
  at::Tensor share;
  unseen([&] { share = whole / counts(call, w); });
  return {at::mul(mean_of(padded(call[0], w, 0), w, none, true), share.to(call[0].scalar_type()))};
}

std::vector<int64_t> spatial_axes(const Call& call) {
  if (call[0].dim() < 3) throw Error("its input has no axes to pool over");
  std::vector<int64_t> axes(static_cast<size_t>(call[0].dim()) - 2);
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}

Tensors global_average(const Call& call) { return {at::mean(call[0], spatial_axes(call), /*keepdim=*/true)}; }
Tensors global_max(const Call& call) { return {at::amax(call[0], spatial_axes(call), /*keepdim=*/true)}; }

constexpr LoweringRow kPoolingRows[] = {
    {"MaxPool", max_pool},
    {"AveragePool", average_pool},
    {"GlobalAveragePool", global_average},
    {"GlobalMaxPool", global_max},
};

}  // namespace

std::span<const LoweringRow> pooling() { return kPoolingRows; }

}  // namespace parity::onnx
