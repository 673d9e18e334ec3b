#include "measure/reordered.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "measure/local.hpp"
#include "measure/measure.hpp"

namespace parity {
namespace {

constexpr int64_t kSlices = 2048, kElements = 1 << 21, kProjections = 8;
constexpr uint64_t kSeed = 1;

using Order = std::vector<int64_t>;  // [i]: which slice of the right value the candidate has at i

// (slices, projections) of some elements of each slice, the same ones for equal shapes.
at::Tensor projected(const at::Tensor& values, int64_t axis) {
  const at::Tensor slices = values.movedim(axis, 0).flatten(1);
  const int64_t most = std::max<int64_t>(1, kElements / slices.size(0));
  const at::Tensor some = raised(slices.slice(1, 0, slices.size(1), (slices.size(1) + most - 1) / most));
  const at::Tensor directions =
      at::randn({some.size(1), kProjections}, at::detail::createCPUGenerator(kSeed), some.options());
  return at::nan_to_num(some, 0, 0, 0).mm(directions);
}

// Equal slices (padding) stay where they are.
std::optional<Order> order_along(const at::Tensor& right, const at::Tensor& candidate, int64_t axis) {
  const at::Tensor apart = at::cdist(projected(candidate, axis), projected(right, axis));  // (slices, slices)
  const auto [least, nearest] = apart.min(1);
  const at::Tensor in_place = at::arange(nearest.size(0), nearest.options());
  const at::Tensor order = nearest.where(apart.diagonal() > least, in_place).contiguous();
  Order from(order.const_data_ptr<int64_t>(), order.const_data_ptr<int64_t>() + order.numel()), sorted = from;
  if (std::is_sorted(from.begin(), from.end())) return std::nullopt;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int64_t>(i)) return std::nullopt;
  return from;
}

// The greatest number of slices that always moves together.
int64_t width_of(const Order& from) {
  const auto n = static_cast<int64_t>(from.size());
  int64_t width = n;
  for (int64_t i = 0; i < n; ++i)
    if (i == 0 || from[i] != from[i - 1] + 1) width = std::gcd(width, std::gcd(i, from[i]));
  return width;
}

std::string range(int64_t block, int64_t width) {
  return width == 1 ? fmt::format("{}", block) : fmt::format("{} to {}", block * width, block * width + width - 1);
}

std::string words(const Order& from, int64_t axis, int64_t width) {
  const std::string what = fmt::format("slices of axis {}", axis);
  Order blocks;
  for (size_t i = 0; i < from.size(); i += width) blocks.push_back(from[i] / width);
  const auto n = static_cast<int64_t>(blocks.size());
  const std::string each = width == 1 ? "" : fmt::format(", {} at a time", width);
  Order moved;
  bool reverse = true, turned = true;
  for (int64_t i = 0; i < n; ++i) {
    reverse = reverse && blocks[i] == n - 1 - i;
    turned = turned && blocks[i] == (blocks[0] + i) % n;
    if (blocks[i] != i) moved.push_back(i);
  }
  if (moved.size() == 2)
    return fmt::format("{}: {} and {} exchanged", what, range(moved[0], width), range(moved[1], width));
  if (reverse) return fmt::format("{} in reverse{}", what, each);
  if (turned) return fmt::format("{} turned by {}", what, blocks[0] * width);
  return fmt::format("{} in another order{}, {} of {} elsewhere", what, each, moved.size(), n);
}

double distance(const at::Tensor& a, const at::Tensor& b) { return measure_sums(a, b).difference_norm; }

}  // namespace

std::optional<Reordered> reordered(const at::Tensor& right, const at::Tensor& candidate) {
  if (!at::isFloatingType(right.scalar_type()) || !at::isFloatingType(candidate.scalar_type())) return std::nullopt;
  std::optional<Reordered> best;
  double least = distance(right, candidate);
  const auto offer = [&](Reordered other) {
    if (const double away = distance(other.value, candidate); away < least) least = away, best = std::move(other);
  };
  for (int64_t axis = 0; axis < right.dim(); ++axis) {
    const int64_t n = right.size(axis);
    if (n < 2 || n > kSlices || right.numel() / n < 2) continue;
    const std::optional<Order> from = order_along(right, candidate, axis);
    if (!from) continue;
    const int64_t width = width_of(*from);
    offer({right.index_select(axis, at::tensor(*from)), axis, width, words(*from, axis, width)});
  }
  for (int64_t a = 0; a < right.dim(); ++a)
    for (int64_t b = a + 1; b < right.dim(); ++b)
      if (right.size(a) == right.size(b) && right.size(a) > 1)
        offer({right.transpose(a, b).contiguous(), a, 1, fmt::format("axes {} and {} exchanged", a, b)});
  return best;
}

}  // namespace parity
