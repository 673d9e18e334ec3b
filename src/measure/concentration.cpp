#include "measure/concentration.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "measure/local.hpp"

namespace parity {
namespace {

constexpr double kNearlyAll = .99, kMostOfReference = .75;
constexpr int64_t kSample =
    1 << 18;                     // elements that say whether it is worth looking at all: two for each of 128k tokens
constexpr double kLikely = .95;  // of the sample's squares; of spread ones half of the places have .85 by chance
constexpr double kAlike = .01;   // of a place's mean: the last hundredth of 512 channels is five more of them
constexpr int64_t kChunk = 1 << 22;  // elements that are raised to fp64 at once
constexpr size_t kMostListed = 4;    // places without a rule, one by one

// Of a difference and of the reference: element by element, or summed for each place of an axis.
struct Squares {
  at::Tensor difference, reference;
};

Squares squares_of(const at::Tensor& reference, const at::Tensor& candidate) {
  const auto whole = [](const at::Tensor& values) {
    const at::Tensor finite = finite_or_zero(raised(values));
    return finite.is_complex() ? finite : finite.to(at::kDouble);
  };
  const auto square = [](const at::Tensor& values) {
    return values.is_complex() ? values.abs().square() : values.square();
  };
  const at::Tensor own = whole(reference);
  return {square(whole(candidate) - own), square(own)};
}

std::vector<Squares> none(at::IntArrayRef sizes) {
  std::vector<Squares> by_axis;
  for (const int64_t size : sizes) by_axis.push_back({at::zeros(size, at::kDouble), at::zeros(size, at::kDouble)});
  return by_axis;
}

// The last axis is summed over once for all the others: what is left is small.
void add(std::vector<Squares>& by_axis, const Squares& elements, int64_t first, int64_t chunked) {
  for (const auto of : {&Squares::difference, &Squares::reference}) {
    at::Tensor squares = elements.*of;
    while (squares.dim() > 0) {
      const int64_t axis = squares.dim() - 1;
      const at::Tensor part = axis == 0 ? squares : squares.flatten(0, axis - 1).sum(0), &sums = by_axis[axis].*of;
      (axis == chunked ? sums.narrow(0, first, part.size(0)) : sums).add_(part);
      squares = squares.sum(axis);
    }
  }
}

// Of elements all over the tensor: a step that has no divisor in common with its size meets each once.
std::vector<Squares> sampled(const at::Tensor& reference, const at::Tensor& candidate) {
  const int64_t n = reference.numel();
  auto step = static_cast<int64_t>(.618 * static_cast<double>(n)) | 1;
  while (std::gcd(step, n) != 1) step += 2;
  at::Tensor at = at::empty(kSample, at::kLong);
  int64_t place = 0;
  for (auto& index : std::span(at.mutable_data_ptr<int64_t>(), kSample)) {
    index = place;
    place = (place + step) % n;
  }
  const Squares squares = squares_of(reference.take(at), candidate.take(at));
  std::vector<Squares> by_axis = none(reference.sizes());
  for (int64_t axis = reference.dim() - 1; axis >= 0; --axis) {
    const at::Tensor here = at.remainder(reference.size(axis));
    by_axis[axis].reference.index_add_(0, here, squares.reference);
    by_axis[axis].difference.index_add_(0, here, squares.difference);
    at = at.div(reference.size(axis), "floor");
  }
  return by_axis;
}

std::vector<Squares> summed(const at::Tensor& reference, const at::Tensor& candidate) {
  std::vector<Squares> by_axis = none(reference.sizes());
  const auto sizes = reference.sizes();
  const int64_t chunked = std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
  const int64_t step = std::max<int64_t>(1, kChunk / std::max<int64_t>(1, reference.numel() / sizes[chunked]));
  for (int64_t first = 0; first < sizes[chunked]; first += step) {
    const int64_t count = std::min(step, sizes[chunked] - first);
    add(by_axis, squares_of(reference.narrow(chunked, first, count), candidate.narrow(chunked, first, count)), first,
        chunked);
  }
  return by_axis;
}

// "11", "32:64", "1::2", "[0, 5, 9, …]" of ascending places.
std::string slice(const std::vector<int64_t>& places, int64_t size) {
  if (places.size() == 1) return fmt::format("{}", places[0]);
  const int64_t step = places[1] - places[0], end = places.back() + step;
  for (size_t i = 1; i < places.size(); ++i)
    if (places[i] - places[i - 1] != step) {
      const auto last = places.begin() + static_cast<ptrdiff_t>(std::min(places.size(), kMostListed));
      return fmt::format("[{}{}]", fmt::join(places.begin(), last, ", "), places.size() > kMostListed ? ", …" : "");
    }
  const std::string stop = end >= size ? "" : fmt::format("{}", places.back() + 1);
  const std::string start = places[0] == 0 ? "" : fmt::format("{}", places[0]);
  return step == 1 ? fmt::format("{}:{}", start, stop) : fmt::format("{}:{}:{}", start, stop, step);
}

// The fewest places of an axis that hold so much, and those that hold no less; empty where these are more than half of
// it.
std::vector<int64_t> fewest(const Squares& of_places, double share) {
  const int64_t size = of_places.difference.size(0);
  const double *d = of_places.difference.const_data_ptr<double>(), *r = of_places.reference.const_data_ptr<double>();
  const double all = std::accumulate(d, d + size, 0.0), norm = std::accumulate(r, r + size, 0.0);
  std::vector<int64_t> places(size);
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) { return d[a] > d[b]; });
  const int64_t half = size / 2;
  double held = 0;
  int64_t count = 0;
  while (count < half && held < share * all) held += d[places[count++]];
  if (count == 0 || held < share * all) return {};
  const double alike = kAlike * held / static_cast<double>(count);
  const int64_t with_others = std::count_if(d, d + size, [&](double squares) { return squares >= alike; });
  places.resize(with_others <= half ? std::max(count, with_others) : count);
  const double own =
      std::transform_reduce(places.begin(), places.end(), 0.0, std::plus<>(), [&](int64_t p) { return r[p]; });
  if (own > kMostOfReference * norm) return {};
  std::sort(places.begin(), places.end());
  return places;
}

bool differ(const std::vector<Squares>& by_axis) { return by_axis[0].difference.sum().item<double>() > 0; }

bool may_be_concentrated(const at::Tensor& reference, const at::Tensor& candidate) {
  if (reference.numel() <= kSample) return true;
  const std::vector<Squares> by_axis = sampled(reference, candidate);
  return !differ(by_axis)  // few elements: the sample has none of them
         || std::ranges::any_of(by_axis, [](const Squares& axis) { return !fewest(axis, kLikely).empty(); });
}

}  // namespace

std::optional<Concentration> concentration(const at::Tensor& reference, const at::Tensor& candidate) {
  if (reference.sizes() != candidate.sizes()) throw Error("concentration: the shapes differ");
  if (reference.dim() == 0 || reference.numel() == 0) return std::nullopt;
  if (!may_be_concentrated(reference, candidate)) return std::nullopt;
  const std::vector<Squares> by_axis = summed(reference, candidate);
  if (!differ(by_axis)) return std::nullopt;
  Concentration out{1, ""};
  std::vector<std::string> indices;
  for (int64_t axis = 0; axis < reference.dim(); ++axis) {
    const std::vector<int64_t> places = fewest(by_axis[axis], kNearlyAll);
    indices.push_back(places.empty() ? ":" : slice(places, reference.size(axis)));
    if (!places.empty()) out.share -= 1 - kNearlyAll;
  }
  while (!indices.empty() && indices.back() == ":") indices.pop_back();
  if (indices.empty()) return std::nullopt;
  out.indices = fmt::format("[{}]", fmt::join(indices, ", "));
  return out;
}

}  // namespace parity
