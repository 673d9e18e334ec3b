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

  /// `input` resized along one axis.
  at::Tensor along(const at::Tensor& input, int64_t axis, const Axis& a) const {
    if (mode_ == "nearest") return at::index_select(input, axis, constant(nearest(a)));
    return antialias_ && a.scale < 1 ? smoothed(input, axis, a) : interpolated(input, axis, a);
  }

  /// By output element: does it lie outside of what tf_crop_and_resize crops from?
  at::Tensor outside(const Axis& a) const {
    const at::Tensor at = originals(at::arange(a.out, at::kDouble), a);
    return at::logical_or(at::lt(at, 0), at::gt(at, a.in - 1));
  }

 private:
  // Of places in the output those in the input: an affine map.
  std::pair<double, double> map(const Axis& a) const {
    const auto in = static_cast<double>(a.in), out = static_cast<double>(a.out);
    if (coordinates_ == "asymmetric") return {1 / a.scale, 0};
    if (coordinates_ == "align_corners") return {a.out == 1 ? 0 : (in - 1) / (out - 1), 0};
    if (coordinates_ == "pytorch_half_pixel" && a.out == 1) return {0, 0};
    const double half = 0.5 / a.scale - 0.5;
    if (coordinates_ == "half_pixel" || coordinates_ == "pytorch_half_pixel") return {1 / a.scale, half};
    if (coordinates_ == "half_pixel_symmetric") return {1 / a.scale, in / 2 * (1 - out / (a.scale * in)) + half};
    if (!crops()) throw Error(fmt::format("its coordinate_transformation_mode '{}' is not known here", coordinates_));
    if (a.out == 1) return {0, 0.5 * (a.begin + a.end) * (in - 1)};
    return {(a.end - a.begin) * (in - 1) / (out - 1), a.begin * (in - 1)};
  }

  at::Tensor originals(const at::Tensor& places, const Axis& a) const {
    const auto [factor, offset] = map(a);
    return at::add(at::mul(places, factor), offset);
  }

  // In float32, as runtimes have it: whether a place is just beyond the middle depends on that rounding.
  std::vector<int64_t> nearest(const Axis& a) const {
    const auto [factor, offset] = map(a);
    std::vector<int64_t> places;
    for (int64_t i = 0; i < a.out; ++i) {
      const auto at = static_cast<float>(static_cast<double>(i) * factor + offset);
      const float down = std::floor(at), part = at - down;
      bool up = part > 0.5F;
      if (rounding_ == "round_prefer_ceil") up = part >= 0.5F;
      if (rounding_ == "floor") up = false;
      if (rounding_ == "ceil") up = part > 0;
      places.push_back(std::clamp<int64_t>(static_cast<int64_t>(down) + (up ? 1 : 0), 0, a.in - 1));
    }
    return places;
  }

  double weight(double distance) const {
    const double d = std::abs(distance), a = cubic_;
    if (mode_ == "linear") return std::max(0., 1 - d);
    if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
  }

  // The weights of the neighbours from the first one on, `part` beyond the one before the place.
  Tensors weights(const at::Tensor& part) const {
    if (mode_ == "linear") return {at::rsub(part, 1), part};
    const double a = cubic_;
    const auto near = [&](const at::Tensor& d) {  // ((a + 2) d - (a + 3)) d d + 1
      return at::add(at::mul(at::mul(at::sub(at::mul(d, a + 2), a + 3), d), d), 1);
    };
    const auto far = [&](const at::Tensor& d) {  // ((a d - 5 a) d + 8 a) d - 4 a
      return at::sub(at::mul(at::add(at::mul(at::sub(at::mul(d, a), 5 * a), d), 8 * a), d), 4 * a);
    };
    const at::Tensor rest = at::rsub(part, 1);
    return {far(at::add(part, 1)), near(part), near(rest), far(at::add(rest, 1))};
  }

  // Places and weights are computed in the tensor's dtype: runtimes do so, and their roundings are part of what is
  // valid.
  at::Tensor interpolated(const at::Tensor& input, int64_t axis, const Axis& a) const {
    const at::Tensor at = originals(at::arange(a.out, input.scalar_type()), a), down = at::floor(at);
    Tensors weights = this->weights(at::sub(at, down));
    const auto first = -static_cast<int64_t>(weights.size() / 2) + 1;
    Tensors places;
    for (size_t t = 0; t < weights.size(); ++t) places.push_back(at::add(down, first + static_cast<int64_t>(t)));
    if (exclude_outside_) exclude(weights, places, a);
    at::Tensor sum;
    for (size_t t = 0; t < weights.size(); ++t) {
      const at::Tensor picked = at::index_select(input, axis, at::clamp(places[t], 0, a.in - 1).to(at::kLong));
      const at::Tensor part = at::mul(picked, at::reshape(weights[t], beside(input, axis)));
      sum = sum.defined() ? at::add(sum, part) : part;
    }
    return sum;
  }

  // Weights beyond the edge count for nothing, and the others for more.
  static void exclude(Tensors& weights, const Tensors& places, const Axis& a) {
    at::Tensor sum;
    for (size_t t = 0; t < weights.size(); ++t) {
      const at::Tensor inside = at::logical_and(at::ge(places[t], 0), at::lt(places[t], a.in));
      weights[t] = at::where(inside, weights[t], at::zeros_like(weights[t]));
      sum = sum.defined() ? at::add(sum, weights[t]) : weights[t];
    }
    for (at::Tensor& weight : weights) weight = at::div(weight, sum);
  }

  // (1, …, -1 at `axis`, …, 1)
  static std::vector<int64_t> beside(const at::Tensor& input, int64_t axis) {
    std::vector<int64_t> shape(static_cast<size_t>(input.dim()), 1);
    shape[static_cast<size_t>(axis)] = -1;
    return shape;
  }

  // With antialias a smaller output looks at as many neighbours as it leaves out others.
  Taps taps(const Axis& a) const {
    const auto [factor, offset] = map(a);
    const auto reach = static_cast<int64_t>(std::ceil((mode_ == "cubic" ? 2 : 1) / a.scale)) + 1;
    Taps taps{std::vector<std::vector<int64_t>>(static_cast<size_t>(2 * reach)),
              std::vector<std::vector<double>>(static_cast<size_t>(2 * reach))};
    for (int64_t i = 0; i < a.out; ++i) {
      const double at = static_cast<double>(i) * factor + offset;
      const auto first = static_cast<int64_t>(std::floor(at)) - reach + 1;
      double sum = 0;
      for (int64_t t = 0; t < 2 * reach; ++t) {
        const int64_t place = first + t;
        const bool out = exclude_outside_ && (place < 0 || place >= a.in);
        const double w = out ? 0 : weight((at - static_cast<double>(place)) * a.scale);
        taps.places[static_cast<size_t>(t)].push_back(std::clamp<int64_t>(place, 0, a.in - 1));
        taps.weights[static_cast<size_t>(t)].push_back(w);
        sum += w;
      }
      for (auto& weights : taps.weights) weights.back() /= sum;
    }
    return taps;
  }

  at::Tensor smoothed(const at::Tensor& input, int64_t axis, const Axis& a) const {
    const Taps taps = this->taps(a);
    at::Tensor sum;
    for (size_t t = 0; t < taps.places.size(); ++t) {
      const at::Tensor weights = at::reshape(constant(taps.weights[t]).to(input.scalar_type()), beside(input, axis));
      const at::Tensor part = at::mul(at::index_select(input, axis, constant(taps.places[t])), weights);
      sum = sum.defined() ? at::add(sum, part) : part;
    }
    return sum;
  }

  std::string mode_, coordinates_, rounding_;
  double cubic_;
  bool exclude_outside_, antialias_;
};

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
    result = sampler.along(result, axis, axes[i]);
    if (!sampler.crops()) continue;
    std::vector<int64_t> shape(axes.size(), 1);
    shape[i] = axes[i].out;
    const at::Tensor value = at::full_like(result, call.number("extrapolation_value", 0));
    result = at::where(at::reshape(sampler.outside(axes[i]), shape), value, result);
  }
  return {result};
}

constexpr LoweringRow kResizingRows[] = {{"Resize", resize}};

}  // namespace

std::span<const LoweringRow> resizing() { return kResizingRows; }

}  // namespace parity::onnx
