#include "ranks/shards.hpp"

#include <ATen/ops/cat.h>

#include <algorithm>

namespace parity {
namespace {

using Kind = Placement::Kind;

at::Tensor side_by_side(const std::vector<at::Tensor>& parts, const Placement& placement) {
  if (placement.sections == 1) return at::cat(parts, placement.axis);
  std::vector<at::Tensor> sections;
  for (int64_t s = 0; s < placement.sections; ++s)
    for (const at::Tensor& part : parts) {
      const int64_t length = part.size(placement.axis) / placement.sections;
      sections.push_back(part.narrow(placement.axis, s * length, length));
    }
  return at::cat(sections, placement.axis);
}

at::Tensor sum_of(const std::vector<at::Tensor>& parts) {
  const at::ScalarType dtype = parts.front().scalar_type();
  const at::ScalarType wide = at::isComplexType(dtype) ? at::kComplexDouble : at::kDouble;
  at::Tensor sum = parts.front().to(wide, /*non_blocking=*/false, /*copy=*/true);
  for (size_t i = 1; i < parts.size(); ++i) sum += parts[i].to(wide);
  return sum.to(dtype);
}

at::Tensor one_of(const std::vector<at::Tensor>& parts, const Placement& placement) {
  if (placement.kind == Kind::split) return side_by_side(parts, placement);
  return placement.kind == Kind::partial ? sum_of(parts) : parts.front();
}

using Shape = std::vector<int64_t>;

std::optional<Shape> one_shape(const std::vector<Shape>& shapes, const Placement& placement) {
  Shape whole = shapes.front();
  const auto axis = static_cast<size_t>(placement.axis);
  const bool split = placement.kind == Kind::split;
  if (split && (placement.axis < 0 || axis >= whole.size())) return std::nullopt;
  if (split) whole[axis] = 0;
  for (Shape shape : shapes) {
    if (split && shape.size() == whole.size()) {
      if (shape[axis] % placement.sections != 0) return std::nullopt;
      whole[axis] += shape[axis];
      shape[axis] = whole[axis];
    }
    if (shape != whole) return std::nullopt;
  }
  return whole;
}

// The innermost axis first: its ranks stand side by side.
template <class Part, class Combine>
std::optional<Part> folded(const Mesh& grid, std::vector<Part> parts, const Combine& combine) {
  for (size_t a = grid.axes.size(); a-- > 0;) {
    const auto together = static_cast<size_t>(grid.axes[a].second);
    std::vector<Part> next;
    for (size_t i = 0; i < parts.size(); i += together) {
      std::optional<Part> one = combine(std::vector<Part>(&parts[i], &parts[i] + together), a);
      if (!one) return std::nullopt;
      next.push_back(std::move(*one));
    }
    parts = std::move(next);
  }
  return std::move(parts.front());
}

}  // namespace

at::Tensor join_parts(const Mesh& grid, const Placements& placements, std::vector<at::Tensor> parts) {
  at::ScalarType dtype = parts.front().scalar_type();
  for (const at::Tensor& part : parts)
    if (part.scalar_type() != dtype) dtype = at::promote_types(dtype, part.scalar_type());
  for (at::Tensor& part : parts) part = part.to(dtype);
  return *folded(grid, std::move(parts), [&](const std::vector<at::Tensor>& line, size_t axis) {
    return std::optional(one_of(line, placements[axis]));
  });
}

std::optional<std::vector<int64_t>> joined_shape(const Mesh& grid, const Placements& placements,
                                                 std::vector<std::vector<int64_t>> shapes) {
  return folded(grid, std::move(shapes),
                [&](const std::vector<Shape>& line, size_t axis) { return one_shape(line, placements[axis]); });
}

std::vector<at::Tensor> ShardedTensor::parts() const {
  std::vector<at::Tensor> parts;
  for (const auto& one : load) parts.push_back(one());
  return parts;
}

at::Tensor ShardedTensor::whole() const { return join_parts(grid, placements, parts()); }

std::vector<size_t> ShardedTensor::axes(Placement::Kind kind) const {
  std::vector<size_t> found;
  for (size_t a = 0; a < placements.size(); ++a)
    if (placements[a].kind == kind && grid.axes[a].second > 1) found.push_back(a);
  return found;
}

std::vector<std::vector<size_t>> ShardedTensor::lines(size_t axis) const {
  std::vector<std::vector<size_t>> lines;
  for (int64_t place = 0; place < grid.ranks(); ++place) {
    std::vector<int64_t> at = grid.at(place);
    if (at[axis] != 0) continue;
    std::vector<size_t>& line = lines.emplace_back();
    for (int64_t i = 0; i < grid.axes[axis].second; ++i) {
      at[axis] = i;
      line.push_back(static_cast<size_t>(grid.rank(at)));
    }
  }
  return lines;
}

}  // namespace parity
