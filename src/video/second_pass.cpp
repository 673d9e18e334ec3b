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
  const int width = reference.width, height = reference.height;
  const auto channels = static_cast<size_t>(reference.channels);
  float* to = out.as<float>();
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (size_t k = 0; k < channels; ++k) {
        const int row = h.placement.row(h.flip_y ? height - 1 - y : y, x, height),
                  column = h.placement.column(y, h.flip_x ? width - 1 - x : x, width);
        const size_t from = static_cast<size_t>(int64_t{row} * width + column) * channels;
        const double v = unit.as<float>()[from + (channels == 3 ? static_cast<size_t>(h.order[k]) : k)];
        const auto& value = h.value[std::min<size_t>(k, 2)];
        *to++ = static_cast<float>(value ? value(v) : v);
      }
  return out;
}

namespace {

// The reference's last frame against the candidate's first, and so on.
double error_reversed(FrameSource& reference, FrameSource& candidate) {
  constexpr size_t kMost = size_t{1} << 30;  // bytes
  std::vector<Frame> frames(1);
  for (size_t bytes = 0; reference.read(frames.back()); frames.emplace_back())
    if (bytes += frames.back().bytes.size(); bytes > kMost) return 1;
  frames.pop_back();
  double sum = 0;
  Frame theirs, ours, unit;
  size_t count = 0;
  for (; count < frames.size() && candidate.read(theirs); ++count) {
    to_unit(frames[frames.size() - 1 - count], ours), to_unit(theirs, unit);
    sum += mean_square(ours, unit);
  }
  return count > 0 ? sum / static_cast<double>(count) : 1;
}

}  // namespace

double error_under(FrameSource& reference, FrameSource& candidate, const ClipHypothesis& h) {
  if (h.reversed) return error_reversed(reference, candidate);
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
