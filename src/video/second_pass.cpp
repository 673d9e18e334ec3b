// A hypothesis at full size.
#include <deque>

#include "video/diagnose.hpp"
#include "video/reader.hpp"

namespace parity {
namespace {

double mean_square(const Frame& a, const Frame& b) {  // both fp32 in [0, 1]
  double sum = 0;
  for (size_t i = 0; i < a.count(); ++i) {
    const double d = static_cast<double>(a.as<float>()[i]) - static_cast<double>(b.as<float>()[i]);
    sum += d * d;
  }
  return sum / static_cast<double>(a.count());
}

/// The element `back` places before the newest, null when it is not there (any more).
std::shared_ptr<const Frame> before(const std::deque<std::shared_ptr<const Frame>>& frames, int back) {
  const auto size = static_cast<int>(frames.size());
  return back < size ? frames[static_cast<size_t>(size - 1 - back)] : nullptr;
}

}  // namespace

Frame changed(const Frame& reference, const ClipHypothesis& h) {
  Frame unit, out;
  to_unit(reference, unit);
  out.shape(reference.width, reference.height, reference.channels, Sample::f32);
  out.span = 1;
  const auto channels = static_cast<size_t>(reference.channels), width = static_cast<size_t>(reference.width),
             height = static_cast<size_t>(reference.height);
  float* to = out.as<float>();
  for (size_t y = 0; y < height; ++y)
    for (size_t x = 0; x < width; ++x)
      for (size_t k = 0; k < channels; ++k) {
        const size_t from = ((h.flip_y ? height - 1 - y : y) * width + (h.flip_x ? width - 1 - x : x)) * channels;
        const double v = unit.as<float>()[from + (channels == 3 ? static_cast<size_t>(h.order[k]) : k)];
        const auto& value = h.value[std::min<size_t>(k, 2)];
        *to++ = static_cast<float>(value ? value(v) : v);
      }
  return out;
}

double error_under(FrameSource& reference, FrameSource& candidate, const ClipHypothesis& h) {
  ReadAhead references(reference), candidates(candidate);
  std::deque<std::shared_ptr<const Frame>> r, c;
  const int late = std::max(h.offset, 0), early = std::max(-h.offset, 0);
  double sum = 0;
  int64_t count = 0;
  Frame unit;
  for (int64_t i = 0;; ++i) {
    auto a = references.next(), b = candidates.next();
    if (!a || !b) break;
    r.push_back(std::move(a));
    c.push_back(std::move(b));
    if (r.size() > static_cast<size_t>(std::abs(h.offset)) + 1) r.pop_front(), c.pop_front();
    const bool moved = i - early >= h.begin;  // the candidate frame is i - early
    const auto from = moved ? before(r, late) : before(r, 0), to = moved ? before(c, early) : before(c, 0);
    if (!from || !to) continue;
    to_unit(*to, unit);
    sum += mean_square(changed(*from, h), unit);
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : 1;
}

}  // namespace parity
