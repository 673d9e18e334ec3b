#include "diagnose/shard_parts.hpp"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace parity {
namespace {

// Part `i` of `n` of each section along the placement's axis; undefined where they do not divide evenly.
at::Tensor part_along(const at::Tensor& whole, const Placement& placement, int64_t i, int64_t n) {
  const int64_t section = whole.size(placement.axis) / placement.sections, length = section / n;
  if (length * n * placement.sections != whole.size(placement.axis)) return {};
  std::vector<at::Tensor> pieces;
  for (int64_t s = 0; s < placement.sections; ++s)
    pieces.push_back(whole.narrow(placement.axis, s * section + i * length, length));
  return pieces.size() == 1 ? pieces.front() : at::cat(pieces, placement.axis);
}

}  // namespace

std::vector<at::Tensor> parts_of_whole(const at::Tensor& whole, const Mesh& grid, const Placements& placements) {
  std::vector<at::Tensor> parts;
  for (int64_t place = 0; place < grid.ranks(); ++place) {
    at::Tensor part = whole;
    const std::vector<int64_t> at = grid.at(place);
    for (size_t a = 0; a < placements.size() && part.defined(); ++a)
      if (placements[a].kind == Placement::Kind::split)
        part = part_along(part, placements[a], at[a], grid.axes[a].second);
    if (!part.defined()) return {};
    parts.push_back(part);
  }
  return parts;
}

double part_distance(const at::Tensor& value, const at::Tensor& expected) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (value.sizes() != expected.sizes()) return kInfinite;
  const at::Tensor difference = value.to(at::kDouble) - expected.to(at::kDouble);
  const double squares = difference.mul(difference).sum().item<double>();
  return std::isfinite(squares) ? squares : kInfinite;
}

std::optional<std::vector<size_t>> other_order(const std::vector<at::Tensor>& parts,
                                               const std::vector<at::Tensor>& expected,
                                               const std::vector<std::vector<size_t>>& lines) {
  const size_t n = lines.front().size();
  std::vector<size_t> order(n), taken(n);
  for (size_t slot = 0; slot < n; ++slot) {
    std::vector<double> distances(n);
    for (size_t i = 0; i < n; ++i)
      for (const std::vector<size_t>& line : lines) distances[i] += part_distance(parts[line[i]], expected[line[slot]]);
    order[slot] = static_cast<size_t>(std::min_element(distances.begin(), distances.end()) - distances.begin());
    ++taken[order[slot]];
  }
  const bool permutes = std::all_of(taken.begin(), taken.end(), [](size_t times) { return times == 1; });
  return permutes && !std::is_sorted(order.begin(), order.end()) ? std::optional(order) : std::nullopt;
}

}  // namespace parity
