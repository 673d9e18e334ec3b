#include "pair/fingerprint.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "pair/limits.hpp"
#include "pair/readings.hpp"

namespace parity {
namespace {

constexpr int64_t kChunk = 1 << 20;                // elements a pass takes at once
constexpr double kGolden = std::numbers::phi - 1;  // 1 / golden ratio

// Plain real numbers: complex ones as one number each, 8-bit floats widened (few ops take them).
at::Tensor readable(const at::Tensor& tensor) {
  at::Tensor t = tensor.detach();
  if (t.is_complex()) return at::real(t).to(at::kDouble).add(at::imag(t).to(at::kDouble), kGolden);
  if (at::isFloatingType(t.scalar_type()) && t.element_size() == 1) t = t.to(at::kFloat);
  return t.is_neg() ? t.resolve_neg() : t;
}

void whole_tensor_numbers(const at::Tensor& t, Fingerprint& print) {
  const at::Tensor flat = t.reshape({-1});
  double sum = 0, squares = 0;
  int64_t finite = 0;
  for (int64_t at = 0; at < flat.numel(); at += kChunk) {
    const at::Tensor part = flat.narrow(0, at, std::min(kChunk, flat.numel() - at)).to(at::kCPU, at::kDouble);
    const double* x = part.const_data_ptr<double>();
    for (int64_t i = 0; i < part.numel(); ++i) {
      if (!std::isfinite(x[i])) continue;
      ++finite;
      sum += x[i];
      squares += x[i] * x[i];
    }
  }
  print.nonfinite = flat.numel() - finite;
  if (finite) print.mean = sum / static_cast<double>(finite);
  if (finite) print.rms = std::sqrt(squares / static_cast<double>(finite));
}

size_t samples_of(int64_t count) { return std::min<size_t>(Reading::kSamples, static_cast<size_t>(count)); }

// Where of `count` elements sample k stands.
int64_t place_of(size_t k, int64_t count) {
  static const auto shares = [] {
    std::array<double, Reading::kSamples> parts{};
    double whole = 0;
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i] = std::modf(static_cast<double>(2 * i + 1) * kGolden / 2, &whole);
    return parts;
  }();
  return count <= static_cast<int64_t>(Reading::kSamples)
             ? static_cast<int64_t>(k)
             : static_cast<int64_t>(shares[k] * static_cast<double>(count));
}

// Where in the tensor's memory the samples of a reading lie.
void append_offsets(const Reading& reading, const at::Tensor& t, std::vector<int64_t>& offsets) {
  std::vector<int64_t> sizes = t.sizes().vec(), strides = t.strides().vec();
  int64_t base = 0;
  if (!reading.whole()) {
    base = reading.slice[1] * strides[reading.slice[0]];
    sizes[reading.slice[0]] = reading.slice[2];
  }
  if (!reading.factors.empty()) {  // the last axis, as so many
    int64_t stride = strides.back();
    sizes.pop_back(), strides.pop_back();
    sizes.insert(sizes.end(), reading.factors.begin(), reading.factors.end());
    strides.resize(sizes.size());
    for (size_t i = sizes.size(), k = reading.factors.size(); k-- > 0;) strides[--i] = stride, stride *= sizes[i];
  }
  const auto offset_of = [&]<class Index>(Index at) {
    int64_t offset = base;
    for (size_t i = sizes.size(); i-- > 0;) {
      const size_t axis = reading.permutation.empty() ? i : static_cast<size_t>(reading.permutation[i]);
      const auto size = static_cast<Index>(sizes[axis]);
      offset += static_cast<int64_t>(at % size) * strides[axis];
      at /= size;
    }
    return offset;
  };
  const bool narrow = reading.count <= std::numeric_limits<uint32_t>::max();  // divided in a third of the time
  for (size_t k = 0; k < samples_of(reading.count); ++k) {
    const int64_t at = place_of(k, reading.count);
    offsets.push_back(narrow ? offset_of(static_cast<uint32_t>(at)) : offset_of(static_cast<uint64_t>(at)));
  }
}

void keep_samples(const double* x, Reading& reading) {
  const size_t n = samples_of(reading.count);
  std::array<double, Reading::kSamples> sizes{}, values{};
  size_t present = 0;  // that are not 0
  for (size_t k = 0; k < n; ++k) {
    values[k] = std::isfinite(x[k]) ? x[k] : 0;
    if (values[k] != 0) sizes[present++] = std::abs(values[k]);
    reading.integers = reading.integers && values[k] == std::rint(values[k]);
  }
  const auto median = sizes.begin() + present / 2;
  std::nth_element(sizes.begin(), median, sizes.begin() + present);
  if (present) reading.scale = static_cast<float>(*median);
  const double unit = present ? *median : 1;
  for (size_t k = 0; k < n; ++k) reading.samples[k] = static_cast<float>(std::asinh(values[k] / unit));
  std::sort(values.begin(), values.begin() + n);
  reading.distinct = static_cast<float>(std::unique(values.begin(), values.begin() + n) - values.begin());
}

// `order` lists axes of length 1 first; puts them where `target` has such axes, so that no reshape is left to do.
std::vector<int64_t> place_ones(const std::vector<int64_t>& order, const std::vector<int64_t>& shape,
                                at::IntArrayRef target) {
  std::vector<int64_t> ones, longer, placed;
  for (const int64_t axis : order) (shape[axis] == 1 ? ones : longer).push_back(axis);
  if (order.size() != target.size()) return order;
  size_t one = 0, next = 0;
  for (const int64_t n : target) {
    if (n == 1 ? one == ones.size() : next == longer.size()) return order;
    placed.push_back(n == 1 ? ones[one++] : longer[next++]);
  }
  return placed;
}

}  // namespace

Fingerprint fingerprint_of(const at::Tensor& tensor, Origin origin) {
  Fingerprint print;
  if (tensor.numel() == 0) return print;
  const at::Tensor t = readable(tensor);
  whole_tensor_numbers(t, print);
  const std::vector<int64_t> shape = t.sizes().vec();
  const bool parts =
      origin != Origin::reference && t.is_floating_point() && t.numel() > static_cast<int64_t>(Reading::kSamples);
  print.readings = readings_of(shape, parts, parts && origin == Origin::engine);
  std::vector<int64_t> offsets;
  for (const Reading& reading : print.readings) append_offsets(reading, t, offsets);
  int64_t span = 1;
  for (size_t axis = 0; axis < shape.size(); ++axis) span += (shape[axis] - 1) * t.stride(static_cast<int64_t>(axis));
  const at::Tensor memory = t.as_strided({span}, {1}), places = at::tensor(offsets, at::kLong).to(t.device());
  const at::Tensor values = memory.index_select(0, places).to(at::kCPU, at::kDouble);
  const double* x = values.const_data_ptr<double>();
  for (Reading& reading : print.readings) {
    keep_samples(x, reading);
    x += samples_of(reading.count);
  }
  return print;
}

double scale_disagreement(double a, double b) { return a == b ? 0 : (a - b) * (a - b) / (a * a + b * b); }

double content_distance(const Reading& a, const Reading& b) {
  if (a.count != b.count || a.scale == 0 || b.scale == 0) return 1;
  const size_t n = samples_of(a.count);
  double mean_a = 0, mean_b = 0;
  for (size_t k = 0; k < n; ++k) mean_a += a.samples[k], mean_b += b.samples[k];
  mean_a /= static_cast<double>(n), mean_b /= static_cast<double>(n);
  double difference = 0, spread = static_cast<double>(n) * (mean_a - mean_b) * (mean_a - mean_b);
  for (size_t k = 0; k < n; ++k) {
    const double x = a.samples[k], y = b.samples[k];
    difference += (x - y) * (x - y);
    spread += (x - mean_a) * (x - mean_a) + (y - mean_b) * (y - mean_b);
  }
  const double gain = scale_disagreement(a.scale, b.scale);
  if (spread == 0) return std::min<double>(1, std::sqrt(gain));  // two constants
  return std::min<double>(1, std::sqrt(difference / spread + gain));
}

double content_weight(const Reading& a, const Reading& b, double distance) {
  const ContentLimits& limits = kPairLimits.content;
  const double beyond = std::min(a.distinct, b.distinct) - limits.few_values;
  // Digits that agree, over those of what just counts as the same: four logits equal to six digits are no chance.
  const double close =
      std::log(std::max<double>(distance, kPairLimits.evidence.least_distance)) / std::log(limits.same.value);
  const double each = a.integers || b.integers ? 1 : std::max<double>(1, close);
  return std::clamp<double>(each * beyond / (limits.enough_values - limits.few_values), 0, 1);
}

Layout layout_between(const Reading& reading, at::IntArrayRef candidate, const Reading& reference_reading,
                      at::IntArrayRef reference) {
  Layout layout;
  std::vector<int64_t> shape = candidate.vec();
  if (!reading.whole()) {
    const auto [axis, begin, length] = reading.slice;
    if (shape[axis] % length == 0 && begin % length == 0)
      layout.split = {axis, begin / length, shape[axis] / length};
    else
      layout.slice = reading.slice;
    shape[axis] = length;
  }
  if (!reference_reading.permutation.empty()) {  // read flat, the candidate is the reference with its axes exchanged
    const auto& order = reference_reading.permutation;
    for (const int64_t axis : order) layout.view.push_back(reference[axis]);
    layout.permutation.resize(order.size());
    for (size_t i = 0; i < order.size(); ++i) layout.permutation[order[i]] = static_cast<int64_t>(i);
    if (shape == layout.view) layout.view.clear();
    return layout;
  }
  std::vector<int64_t> result = shape;
  if (!reading.factors.empty()) {
    layout.view = shape;
    layout.view.pop_back();
    layout.view.insert(layout.view.end(), reading.factors.begin(), reading.factors.end());
    layout.permutation = reading.permutation;
    layout.reshape = reference.vec();
    return layout;
  }
  if (!reading.permutation.empty()) {
    layout.permutation = place_ones(reading.permutation, shape, reference);
    for (size_t i = 0; i < result.size(); ++i) result[i] = shape[layout.permutation[i]];
  } else if (longer_axes(shape) == longer_axes(reference) && shape.size() == reference.size() && shape != reference) {
    result = reference.vec();  // axes of length 1 stand elsewhere: a reshape says it as well as anything
    layout.reshape = result;
  }
  if (result != reference.vec()) layout.reshape = reference.vec();
  return layout;
}

}  // namespace parity
