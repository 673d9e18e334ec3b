// Which readings of a tensor are worth a look.
#include "pair/readings.hpp"

#include <algorithm>
#include <numeric>

namespace parity {
namespace {

constexpr size_t kMostAxes = 6;                                         // beyond these a tensor is only read as it is
constexpr int64_t kHeadWidths[] = {16, 32, 64, 80, 96, 128, 192, 256};  // elements of a head, those in use
constexpr int64_t kCachePadding = 32;  // keys: engines' caches are a multiple of it long (llama.cpp: 32 or 256)

// The orders of axes worth a reading, as permutations of 0 … rank - 1 (the identity first).
std::vector<std::vector<size_t>> axis_orders(size_t rank, bool all) {
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<std::vector<size_t>> orders{order};
  if (rank > kMostAxes) return orders;
  if (all) {
    while (std::next_permutation(order.begin(), order.end())) orders.push_back(order);
    return orders;
  }
  for (size_t a = 0; a < rank; ++a)
    for (size_t b = a + 1; b < rank; ++b)
      for (size_t c = b + 1; c <= rank; ++c) {
        orders.push_back(orders[0]);
        std::rotate(orders.back().begin() + a, orders.back().begin() + b, orders.back().begin() + c);
      }
  return orders;
}

// All readings of one part; an order of the long axes leaves those of length 1 in front.
void add_orders(std::array<int64_t, 3> slice, std::vector<int64_t> shape, std::vector<Reading>& readings) {
  if (slice[2]) shape[slice[0]] = slice[2];
  std::vector<int64_t> lengths_one, longer;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    (shape[axis] == 1 ? lengths_one : longer).push_back(static_cast<int64_t>(axis));
  for (const auto& order : axis_orders(longer.size(), longer.size() <= (slice[2] ? 3 : 4))) {
    Reading reading;
    reading.slice = slice;
    reading.count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    if (!std::is_sorted(order.begin(), order.end())) {
      reading.permutation = lengths_one;
      for (const size_t axis : order) reading.permutation.push_back(longer[axis]);
    }
    readings.push_back(reading);
  }
}

void add_parts(const std::vector<int64_t>& shape, std::vector<Reading>& readings) {
  const auto rank = static_cast<int64_t>(shape.size());
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t n = shape[axis];
    const bool wide = axis == rank - 1 || (axis == 1 && rank >= 4);
    for (const int64_t parts : {2, 3}) {
      if (n % parts != 0 || (n != parts && !wide) || n == 0) continue;
      for (int64_t part = 0; part < parts; ++part) add_orders({axis, part * (n / parts), n / parts}, shape, readings);
    }
    // grouped-query attention: as many query heads per key head as are in use; q, then k, then v
    for (const int64_t group : {2, 3, 4, 5, 6, 7, 8, 12, 16}) {
      if (axis != rank - 1 || n % (group + 2) != 0 || n < 8 * (group + 2)) continue;
      const int64_t unit = n / (group + 2);
      add_orders({axis, 0, group * unit}, shape, readings);
      add_orders({axis, group * unit, unit}, shape, readings);
      add_orders({axis, (group + 1) * unit, unit}, shape, readings);
    }
  }
}

// Engines that rotate neighbouring elements keep the rows of each query and key head interleaved (x0 y0 x1 y1 …),
// others in halves (x0 x1 … y0 y1 …): the last axis is heads of `width` elements, read both ways round.
void add_interleaved(const std::vector<int64_t>& shape, int64_t width, std::vector<Reading>& readings) {
  const int64_t heads = shape.back() / width;
  std::vector<int64_t> view(shape.begin(), shape.end() - 1), ones, longer;
  if (heads > 1) view.push_back(heads);
  for (size_t axis = 0; axis < view.size(); ++axis)
    (view[axis] == 1 ? ones : longer).push_back(static_cast<int64_t>(axis));
  const auto last = static_cast<int64_t>(view.size());
  for (const bool pairs : {true, false})
    for (const auto& order : axis_orders(longer.size(), longer.size() <= 3)) {
      Reading reading;
      reading.count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
      if (heads > 1) reading.factors.push_back(heads);
      reading.factors.push_back(pairs ? width / 2 : 2);
      reading.factors.push_back(pairs ? 2 : width / 2);
      reading.permutation = ones;
      for (const size_t axis : order) reading.permutation.push_back(longer[axis]);
      reading.permutation.push_back(last + 1);
      reading.permutation.push_back(last);
      readings.push_back(reading);
    }
}

void add_engine_layouts(const std::vector<int64_t>& shape, std::vector<Reading>& readings) {
  if (shape.size() < 2 || shape.size() > 4) return;
  const int64_t n = shape.back();
  if (shape.size() > 2 && n % 2 == 0 && n > 2) add_interleaved(shape, n, readings);
  for (const int64_t width : kHeadWidths)  // several heads in one axis
    if (n % width == 0 && (n > width || shape.size() == 2)) add_interleaved(shape, width, readings);
  // scores over a key cache that is longer than what it holds: as many keys as queries
  const int64_t queries = shape[shape.size() - 2];
  if (shape.size() > 2 && queries > 1 && n > queries && n % kCachePadding == 0)
    add_orders({static_cast<int64_t>(shape.size()) - 1, 0, queries}, shape, readings);
}

}  // namespace

std::vector<int64_t> longer_axes(at::IntArrayRef shape) {
  std::vector<int64_t> longer;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(longer), [](int64_t n) { return n != 1; });
  return longer;
}

std::vector<Reading> readings_of(const std::vector<int64_t>& shape, bool parts, bool engine_layouts) {
  std::vector<Reading> readings;
  add_orders({0, 0, 0}, shape, readings);
  if (parts) add_parts(shape, readings);
  if (engine_layouts) add_engine_layouts(shape, readings);
  return readings;
}

}  // namespace parity
