// One pass over a pair of frames. 8-bit pairs go through the integer kernel (exact sums); everything else through fp64
// loops on fp32 samples.
#include "video/measure.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/cpu/frame_difference.hpp"

namespace parity {
namespace {

template <class T>
void unit_samples(const Frame& frame, float* out) {
  const T* in = frame.as<T>();
  const double zero = frame.zero, span = frame.span;
  for (size_t i = 0; i < frame.count(); ++i) out[i] = static_cast<float>((in[i] - zero) / span);
}

/// Order statistics `rank` and `rank + 1` of a histogram, mixed as numpy's percentile does.
double percentile_of(const std::vector<uint32_t>& histogram, uint64_t total, double share) {
  const double position = static_cast<double>(total - 1) * share;
  const auto rank = static_cast<uint64_t>(position);
  const auto ranked = [&](uint64_t wanted) {
    uint64_t seen = 0;
    for (size_t k = 0; k < histogram.size(); ++k)
      if ((seen += histogram[k]) > wanted) return static_cast<double>(k);
    return static_cast<double>(histogram.size() - 1);
  };
  const double low = ranked(rank), high = ranked(std::min(rank + 1, total - 1));
  return low + (high - low) * (position - static_cast<double>(rank));
}

double percentile_of(std::vector<float>& values, double share) {  // reorders
  const double position = static_cast<double>(values.size() - 1) * share;
  const auto rank = static_cast<int64_t>(position);
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  const double low = values[static_cast<size_t>(rank)];
  if (static_cast<size_t>(rank) + 1 == values.size()) return low;
  const double high = *std::min_element(values.begin() + rank + 1, values.end());
  return low + (high - low) * (position - static_cast<double>(rank));
}

void set_motion(FrameMetrics& m, double flicker, double reference, double candidate, double count, double unit) {
  m.flicker = std::sqrt(flicker / count) * unit;
  m.motion_reference = std::sqrt(reference / count) * unit;
  m.motion_candidate = std::sqrt(candidate / count) * unit;
}

/// u8, 1 or 3 channels, same units.
FrameMeasured integers(const Frame& r, const Frame& c, const Frame* r1, const Frame* c1) {
  FrameMeasured out;
  FrameMetrics& m = out.metrics;
  const auto sums = kernels::difference_sums(r.as<uint8_t>(), c.as<uint8_t>(), r1 ? r1->as<uint8_t>() : nullptr,
                                             c1 ? c1->as<uint8_t>() : nullptr, int64_t{r.width} * r.height, r.channels);
  const double n = static_cast<double>(r.count()), unit = 1 / static_cast<double>(r.span);
  uint64_t square = 0, absolute = 0, largest = 0;
  for (uint64_t k = 0; k < 256; ++k) {
    square += k * k * sums.histogram[k];
    absolute += k * sums.histogram[k];
    if (sums.histogram[k] > 0) largest = k;
  }
  m.mse = static_cast<double>(square) / n * unit * unit;
  m.mean_abs = static_cast<double>(absolute) / n * unit;
  m.max_abs = static_cast<double>(largest) * unit;
  m.equal_share = sums.histogram[0] / n;
  out.differences = {{sums.histogram.begin(), sums.histogram.end()}, {}, unit};
  m.p95_abs = percentile_of(out.differences.histogram, r.count(), .95) * unit;
  m.p99_abs = percentile_of(out.differences.histogram, r.count(), .99) * unit;
  if (r.zero == 0 && r.span == 255) {  // else the kernel's numbers are relative to another zero
    m.mean_rel = sums.relative / n;
    if (sums.squares > 0) m.rel_l2 = std::sqrt(static_cast<double>(square) / static_cast<double>(sums.squares));
  }
  for (int k = 0; k < r.channels; ++k)
    m.bias.push_back(static_cast<double>(sums.bias[static_cast<size_t>(k)]) / n * r.channels * unit);
  if (r1)
    set_motion(m, static_cast<double>(sums.flicker), static_cast<double>(sums.motion_reference),
               static_cast<double>(sums.motion_candidate), n, unit);
  return out;
}

struct Loop {
  double square = 0, absolute = 0, largest = 0, relative = 0, reference = 0, flicker = 0, motion_r = 0, motion_c = 0;
  size_t equal = 0;
};

/// `sums` and `bias` are over n samples in the clip's own numbers; `out.differences` is complete.
template <class T>
void set_metrics(const Loop& sums, const std::vector<double>& bias, size_t n, bool motion, FrameMeasured& out) {
  FrameMetrics& m = out.metrics;
  const double count = static_cast<double>(n), unit = out.differences.unit;
  m.mse = sums.square / count * unit * unit;
  m.mean_abs = sums.absolute / count * unit;
  m.max_abs = sums.largest * unit;
  m.mean_rel = sums.relative / count;
  if (sums.reference > 0) m.rel_l2 = std::sqrt(sums.square / sums.reference);
  m.equal_share = static_cast<double>(sums.equal) / count;
  for (const double sum : bias) m.bias.push_back(sum / count * static_cast<double>(bias.size()) * unit);
  if (motion) set_motion(m, sums.flicker, sums.motion_r, sums.motion_c, count, unit);
  const auto percentile = [&](double share) {
    if constexpr (std::is_same_v<T, float>)
      return percentile_of(out.differences.magnitudes, share) * unit;
    else
      return percentile_of(out.differences.histogram, n, share) * unit;
  };
  m.p95_abs = percentile(.95);
  m.p99_abs = percentile(.99);
}

template <class T>
FrameMeasured numbers(const Frame& r, const Frame& c, const Frame* r1, const Frame* c1) {
  FrameMeasured out;
  const T *a = r.as<T>(), *b = c.as<T>(), *a1 = r1 ? r1->as<T>() : nullptr, *b1 = c1 ? c1->as<T>() : nullptr;
  const size_t n = r.count(), channels = static_cast<size_t>(r.channels);
  const double zero = r.zero, span = r.span, floor = span / 255;
  std::vector<double> bias(channels, 0);
  Loop s;
  if constexpr (std::is_same_v<T, float>)
    out.differences.magnitudes.resize(n);
  else
    out.differences.histogram.resize(65536);
  for (size_t i = 0, k = 0; i < n; ++i) {
    const double va = a[i], d = static_cast<double>(b[i]) - va, magnitude = std::abs(d);
    s.square += d * d;
    s.absolute += magnitude;
    s.largest = std::max(s.largest, magnitude);
    s.relative += magnitude / std::max(va - zero, floor);
    s.reference += (va - zero) * (va - zero);
    s.equal += d == 0;
    bias[k] += d;
    k = k + 1 == channels ? 0 : k + 1;
    if constexpr (std::is_same_v<T, float>)
      out.differences.magnitudes[i] = static_cast<float>(magnitude);
    else
      ++out.differences.histogram[static_cast<size_t>(magnitude)];
    if (!a1) continue;
    const double da = va - static_cast<double>(a1[i]), db = static_cast<double>(b[i]) - static_cast<double>(b1[i]);
    s.flicker += (db - da) * (db - da);
    s.motion_r += da * da;
    s.motion_c += db * db;
  }
  out.differences.unit = 1 / span;
  set_metrics<T>(s, bias, n, a1 != nullptr, out);
  return out;
}

FrameMeasured differences(const Frame& r, const Frame& c, const Frame* r1, const Frame* c1) {
  if (r.sample == Sample::u8 && (r.channels == 1 || r.channels == 3)) return integers(r, c, r1, c1);
  if (r.sample == Sample::u8) {
    Frame a, b, a1, b1;
    to_unit(r, a), to_unit(c, b);
    if (r1) to_unit(*r1, a1), to_unit(*c1, b1);
    return numbers<float>(a, b, r1 ? &a1 : nullptr, r1 ? &b1 : nullptr);
  }
  return r.sample == Sample::u16 ? numbers<uint16_t>(r, c, r1, c1) : numbers<float>(r, c, r1, c1);
}

}  // namespace

void to_unit(const Frame& frame, Frame& out) {
  out.shape(frame.width, frame.height, frame.channels, Sample::f32);
  out.zero = 0, out.span = 1, out.time = frame.time;
  switch (frame.sample) {
    case Sample::u8:
      return unit_samples<uint8_t>(frame, out.as<float>());
    case Sample::u16:
      return unit_samples<uint16_t>(frame, out.as<float>());
    case Sample::f32:
      return unit_samples<float>(frame, out.as<float>());
  }
}

bool same_units(const Frame& a, const Frame& b) { return a.sample == b.sample && a.zero == b.zero && a.span == b.span; }

FrameMeasured measure_frame(const Frame& reference, const Frame& candidate, const Frame* reference_before,
                            const Frame* candidate_before, const MeasureOptions& options, SsimScratch* scratch) {
  if (!same_units(reference, candidate)) {
    Frame r, c, r1, c1;
    to_unit(reference, r), to_unit(candidate, c);
    if (reference_before) to_unit(*reference_before, r1), to_unit(*candidate_before, c1);
    return measure_frame(r, c, reference_before ? &r1 : nullptr, reference_before ? &c1 : nullptr, options, scratch);
  }
  FrameMeasured out = differences(reference, candidate, reference_before, candidate_before);
  FrameMetrics& m = out.metrics;
  m.identical = m.equal_share == 1;
  if (!options.ranged) {
    m.mean_rel.reset();
    return out;
  }
  if (m.mse > 0) m.psnr = -10 * std::log10(m.mse);
  if (m.identical) {  // exactly 1, not 1 but for rounding
    const int side = std::min(reference.width, reference.height);
    if (side >= smallest_side(options.ssim)) m.ssim = 1;
    if (options.ms_ssim && side >= kMsSsimSide) m.ms_ssim = 1;
  } else if (options.ssim == SsimKind::gaussian) {
    const SsimScales s = gaussian_ssim(reference, candidate, options.ms_ssim, scratch);
    m.ssim = s.ssim, m.ms_ssim = s.ms_ssim;
  } else {
    m.ssim = ssim_of(reference, candidate, options.ssim);
    if (options.ms_ssim) m.ms_ssim = gaussian_ssim(reference, candidate, true, scratch).ms_ssim;
  }
  return out;
}

}  // namespace parity
