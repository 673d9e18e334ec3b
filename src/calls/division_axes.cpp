#include "calls/division_axes.hpp"

#include <algorithm>
#include <numeric>

namespace parity {

int64_t sum_of(const Extents& extents) { return std::accumulate(extents.begin(), extents.end(), int64_t{0}); }

std::optional<DividedAxis> differing_axis(const std::vector<Shape>& shapes, const Shape& from) {
  std::set<size_t> different;
  for (const Shape& shape : shapes) {
    if (shape.size() != from.size()) return std::nullopt;
    for (size_t a = 0; a < shape.size(); ++a)
      if (shape[a] != from[a]) different.insert(a);
  }
  if (different.size() != 1) return std::nullopt;
  DividedAxis found{*different.begin(), {}};
  for (const Shape& shape : shapes) found.extents.push_back(shape[found.axis]);
  return found;
}

std::optional<DividedAxis> axis_of_chunks(const std::vector<Shape>& chunks, const Shape& whole) {
  const auto found = differing_axis(chunks, whole);
  if (!found || sum_of(found->extents) != whole[found->axis]) return std::nullopt;
  return std::ranges::min(found->extents) > 0 ? found : std::nullopt;
}

std::optional<DividedAxis> axis_laid_out_otherwise(const std::vector<Shape>& chunks, const Shape& whole, bool of_port) {
  const auto sorted = [](Shape shape) {
    std::ranges::sort(shape);
    return shape;
  };
  const Shape& port = of_port ? chunks.front() : whole;
  for (size_t axis = 0; axis < port.size(); ++axis) {
    DividedAxis found{axis, {}};
    const int64_t slice = c10::multiply_integers(port) / std::max<int64_t>(1, port[axis]);
    const bool fit = std::ranges::all_of(chunks, [&](const Shape& chunk) {
      Shape like = port;
      like[axis] = c10::multiply_integers(chunk) / std::max<int64_t>(1, slice);
      found.extents.push_back(like[axis]);
      return of_port ? chunk == like : sorted(chunk) == sorted(like);
    });
    Shape all = port;
    all[axis] = sum_of(found.extents);
    if (fit && (of_port ? sorted(all) == sorted(whole) : all == whole) && std::ranges::min(found.extents) > 0)
      return found;
  }
  return std::nullopt;
}

std::optional<DividedAxis> axis_to_join(const std::vector<Shape>& chunks, const KnownShapes& known) {
  std::optional<DividedAxis> by_extents;
  for (size_t axis = std::max<size_t>(chunks.front().size(), 1) - 1; axis-- > 0;) {
    Shape whole = chunks.front();
    whole[axis] = 0;
    for (const Shape& chunk : chunks) whole[axis] += axis < chunk.size() ? chunk[axis] : 0;
    const auto found = known.has_extents(whole) ? axis_of_chunks(chunks, whole) : std::nullopt;
    if (found && known.has(whole)) return found;
    if (found && !by_extents) by_extents = found;
  }
  return by_extents;
}

std::optional<DividedAxis> axis_to_split(const Shape& whole, const Extents& usual, bool outermost,
                                         const KnownShapes& known) {
  const int64_t all = sum_of(usual);
  std::vector<size_t> axes(std::max<size_t>(whole.size(), 1) - 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (!outermost && !axes.empty()) std::rotate(axes.begin(), axes.begin() + 1, axes.end());
  for (const size_t axis : axes) {
    if (whole[axis] % all != 0) continue;
    DividedAxis found{axis, {}};
    const bool fits = std::all_of(usual.begin(), usual.end(), [&](int64_t extent) {
      Shape chunk = whole;
      found.extents.push_back(chunk[axis] = whole[axis] / all * extent);
      return known.has_extents(chunk);
    });
    if (fits) return found;
  }
  return std::nullopt;
}

std::optional<DividedAxis> axis_of_last(const std::vector<Shape>& chunks, const Shape& whole, const Extents& usual) {
  const auto different = differing_axis(chunks, whole);
  if (!different || whole[different->axis] % sum_of(usual) != 0) return std::nullopt;
  const int64_t rows = whole[different->axis] / sum_of(usual);
  DividedAxis found{different->axis, {}};
  for (size_t i = 0; i < chunks.size(); ++i) {
    const int64_t taken = different->extents[i];
    if (taken < 1 || taken % rows != 0 || taken > rows * usual[i]) return std::nullopt;
    found.extents.push_back(rows * usual[i] - taken);
    found.extents.push_back(taken);
  }
  return found;
}

std::optional<DividedAxis> axis_to_last(const Shape& whole, const Extents& usual, const KnownShapes& known) {
  for (size_t axis = 0; axis + 1 < whole.size(); ++axis) {
    Shape last = whole;
    last[axis] /= sum_of(usual);
    if (!known.has_extents(last)) continue;
    if (auto found = axis_of_last(std::vector<Shape>(usual.size(), last), whole, usual)) return found;
  }
  return std::nullopt;
}

std::optional<DividedAxis> axis_of_last_rows(const std::vector<Shape>& chunks, const Shape& whole) {
  std::optional<DividedAxis> samples;
  bool last_alone = chunks.size() == 1;
  for (size_t axis = 0; axis < whole.size(); ++axis) {
    Extents extents;
    for (const Shape& chunk : chunks) {
      if (chunk.size() != whole.size()) return std::nullopt;
      extents.push_back(chunk[axis]);
    }
    const auto all = [&](int64_t extent) { return std::ranges::count(extents, extent) == std::ssize(extents); };
    if (all(whole[axis]) || all(1)) {
      last_alone = last_alone || whole[axis] > sum_of(extents);
      if (chunks.size() > 1 && all(1) && sum_of(extents) == whole[axis] && !samples)
        samples = DividedAxis{axis, extents};
    } else if (sum_of(extents) == whole[axis] && !samples) {
      samples = DividedAxis{axis, extents};
    } else {
      return std::nullopt;
    }
  }
  if (samples) return samples;
  return last_alone ? std::optional(DividedAxis{0, {}}) : std::nullopt;
}

int64_t rows_of(const Extents& extents, const Extents& usual) {
  if (extents.size() > usual.size() || extents.front() % usual.front() != 0) return 0;
  const int64_t rows = extents.front() / usual.front();
  for (size_t i = 0; i < extents.size(); ++i)
    if (extents[i] != rows * usual[i]) return 0;
  return rows;
}

}  // namespace parity
