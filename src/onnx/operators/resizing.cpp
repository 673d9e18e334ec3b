// Resize: along each axis a weighted sum of a few elements, whose places and weights follow from the attributes alone
// (onnx/docs/Operators.md, Resize).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "onnx/operator.hpp"
#include "trace/capture.hpp"

namespace parity::onnx {
namespace {

struct Axis {
  int64_t in = 1, out = 1;
  double scale = 1;           // out / in, as given
  double begin = 0, end = 1;  // roi, of tf_crop_and_resize
};

// By tap: where each output element looks, with which weight.
struct Taps {
  std::vector<std::vector<int64_t>> places;
  std::vector<std::vector<double>> weights;
  std::vector<double> outside;  // 1: the element lies outside and takes the extrapolation value
};

class Sampler {
 public:
  explicit Sampler(const Call& call)
      : mode_(call.text("mode", "nearest")),
        coordinates_(call.text("coordinate_transformation_mode", "half_pixel")),
        rounding_(call.text("nearest_mode", "round_prefer_floor")),
        cubic_(call.number("cubic_coeff_a", -0.75)),
        exclude_outside_(call.flag("exclude_outside")),
        antialias_(call.flag("antialias")) {}

  bool crops() const { return coordinates_ == "tf_crop_and_resize"; }

  Taps taps(const Axis& axis) const {
    Taps taps;
    const int64_t reach = this->reach(axis);
    const auto count = static_cast<size_t>(mode_ == "nearest" ? 1 : 2 * reach);
    taps.places.resize(count), taps.weights.resize(count);
    for (int64_t i = 0; i < axis.out; ++i) {
      const double at = original(static_cast<double>(i), axis);
      taps.outside.push_back(crops() && (at < 0 || at > static_cast<double>(axis.in - 1)) ? 1 : 0);
      if (mode_ == "nearest")
        add(taps, 0, nearest(at), 1, axis);
      else
        add_neighbours(taps, at, reach, axis);
    }
    return taps;
  }

 private:
  int64_t reach(const Axis& axis) const {
    const double one = mode_ == "cubic" ? 2 : 1;
    return static_cast<int64_t>(std::ceil(antialias_ && axis.scale < 1 ? one / axis.scale : one)) +
           (antialias_ && axis.scale < 1 ? 1 : 0);
  }

  double original(double x, const Axis& a) const {
    const auto in = static_cast<double>(a.in), out = static_cast<double>(a.out);
    if (coordinates_ == "asymmetric") return x / a.scale;
    if (coordinates_ == "align_corners") return a.out == 1 ? 0 : x * (in - 1) / (out - 1);
    if (coordinates_ == "pytorch_half_pixel") return a.out > 1 ? (x + 0.5) / a.scale - 0.5 : 0;
    if (coordinates_ == "half_pixel") return (x + 0.5) / a.scale - 0.5;
    if (coordinates_ == "half_pixel_symmetric") {
      const double adjustment = out / (a.scale * in), center = in / 2;
      return center * (1 - adjustment) + (x + 0.5) / a.scale - 0.5;
    }
    if (crops())
      return a.out > 1 ? a.begin * (in - 1) + x * (a.end - a.begin) * (in - 1) / (out - 1)
                       : 0.5 * (a.begin + a.end) * (in - 1);
    throw Error(fmt::format("its coordinate_transformation_mode '{}' is not known here", coordinates_));
  }

  int64_t nearest(double at) const {
    const double down = std::floor(at);
    const double part = at - down;
    bool up = part > 0.5;
    if (rounding_ == "round_prefer_ceil") up = part >= 0.5;
    if (rounding_ == "floor") up = false;
    if (rounding_ == "ceil") up = part > 0;
    return static_cast<int64_t>(down) + (up ? 1 : 0);
  }

  double weight(double distance) const {
    const double d = std::abs(distance), a = cubic_;
    if (mode_ == "linear") return std::max(0., 1 - d);
    if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
  }

  void add_neighbours(Taps& taps, double at, int64_t reach, const Axis& axis) const {
    const auto first = static_cast<int64_t>(std::floor(at)) - reach + 1;
    const double shrink = antialias_ && axis.scale < 1 ? axis.scale : 1;
    std::vector<double> weights;
    double sum = 0;
    for (int64_t t = 0; t < 2 * reach; ++t) {
      const int64_t place = first + t;
      double w = weight((at - static_cast<double>(place)) * shrink);
      if (exclude_outside_ && (place < 0 || place >= axis.in)) w = 0;
      weights.push_back(w);
      sum += w;
    }
    for (int64_t t = 0; t < 2 * reach; ++t)
      add(taps, static_cast<size_t>(t), first + t, weights[static_cast<size_t>(t)] / sum, axis);
  }

  static void add(Taps& taps, size_t tap, int64_t place, double weight, const Axis& axis) {
    taps.places[tap].push_back(std::clamp<int64_t>(place, 0, axis.in - 1));
    taps.weights[tap].push_back(weight);
  }

  std::string mode_, coordinates_, rounding_;
  double cubic_;
  bool exclude_outside_, antialias_;
};

bool is_zero(double weight) { return weight == 0; }

at::Tensor along(const at::Tensor& input, int64_t axis, const std::vector<double>& numbers) {
  std::vector<int64_t> shape(static_cast<size_t>(input.dim()), 1);
  shape[static_cast<size_t>(axis)] = static_cast<int64_t>(numbers.size());
  at::Tensor shaped;
  unseen([&] { shaped = at::tensor(numbers, at::kDouble).reshape(shape); });
  return shaped.to(input.scalar_type());
}

at::Tensor resized(const at::Tensor& input, int64_t axis, const Taps& taps) {
  if (taps.places.size() == 1) return at::index_select(input, axis, constant(taps.places[0]));
  at::Tensor sum;
  for (size_t t = 0; t < taps.places.size(); ++t) {
    if (std::all_of(taps.weights[t].begin(), taps.weights[t].end(), is_zero)) continue;
    const at::Tensor part =
        at::mul(at::index_select(input, axis, constant(taps.places[t])), along(input, axis, taps.weights[t]));
    sum = sum.defined() ? at::add(sum, part) : part;
  }
  return sum;
}

std::vector<double> numbers_of(const Call& call, size_t input) {
  std::vector<double> numbers;
  if (!call.has(input)) return numbers;
  unseen([&] {
    const at::Tensor flat = call[input].to(at::kDouble).contiguous();
    numbers.assign(flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel());
  });
  return numbers;
}

// One factor for all axes, so that none becomes larger (not_larger) or none smaller than asked for.
void keep_aspect_ratio(std::vector<Axis>& axes, const std::vector<int64_t>& resized, const std::string& policy) {
  if (policy == "stretch") return;
  double factor = 0;
  for (const int64_t a : resized) {
    const double own = axes[static_cast<size_t>(a)].scale;
    factor = factor == 0 ? own : policy == "not_larger" ? std::min(factor, own) : std::max(factor, own);
  }
  for (const int64_t a : resized) {
    Axis& axis = axes[static_cast<size_t>(a)];
    axis.scale = factor;
    axis.out = static_cast<int64_t>(std::round(factor * static_cast<double>(axis.in)));
  }
}

std::vector<Axis> axes_of(const Call& call) {
  const int64_t rank = call[0].dim();
  std::vector<Axis> axes(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i)
    axes[static_cast<size_t>(i)].in = axes[static_cast<size_t>(i)].out = call[0].size(i);
  std::vector<int64_t> resized = call.integers("axes");
  if (resized.empty())
    for (int64_t i = 0; i < rank; ++i) resized.push_back(i);
  for (int64_t& axis : resized) axis = axis_in(axis, rank);
  const std::vector<double> roi = numbers_of(call, 1), scales = numbers_of(call, 2), sizes = numbers_of(call, 3);
  const std::vector<double>& given = sizes.empty() ? scales : sizes;
  if (given.size() != resized.size()) throw Error("it has not one scale or size for each axis");
  for (size_t i = 0; i < resized.size(); ++i) {
    Axis& axis = axes[static_cast<size_t>(resized[i])];
    const auto in = static_cast<double>(axis.in);
    axis.scale = sizes.empty() ? given[i] : given[i] / in;
    axis.out = static_cast<int64_t>(sizes.empty() ? std::floor(in * given[i]) : given[i]);
    if (!(axis.scale > 0) || axis.out < 1 || axis.in < 1) throw Error("its scales or sizes are not positive");
    if (roi.size() == 2 * resized.size()) axis.begin = roi[i], axis.end = roi[resized.size() + i];
  }
  if (!sizes.empty()) keep_aspect_ratio(axes, resized, call.text("keep_aspect_ratio_policy", "stretch"));
  return axes;
}

Tensors resize(const Call& call) {
  const Sampler sampler(call);
  const std::vector<Axis> axes = axes_of(call);
  at::Tensor result = call[0];
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].in == axes[i].out && axes[i].scale == 1 && !sampler.crops()) continue;
    const auto axis = static_cast<int64_t>(i);
    const Taps taps = sampler.taps(axes[i]);
    result = resized(result, axis, taps);
    if (std::all_of(taps.outside.begin(), taps.outside.end(), is_zero)) continue;
    const at::Tensor outside = at::gt(along(result, axis, taps.outside), 0);
    const at::Tensor value = at::full_like(result, call.number("extrapolation_value", 0));
    result = at::where(outside, value, result);
  }
  return {result};
}

constexpr LoweringRow kResizingRows[] = {{"Resize", resize}};

}  // namespace

std::span<const LoweringRow> resizing() { return kResizingRows; }

}  // namespace parity::onnx
