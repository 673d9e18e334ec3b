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

// By axis: what each of its places holds of the squares.
struct Squares {
  std::vector<at::Tensor> difference, reference;
};

// The last axis is summed over once for all the others: what is left is small.
void add(std::vector<at::Tensor>& sums, const at::Tensor& values, int64_t first, int64_t chunked) {
  at::Tensor squares = values.is_complex() ? values.abs().square() : values.square();
  while (squares.dim() > 0) {
    const int64_t axis = squares.dim() - 1;
    const at::Tensor part = axis == 0 ? squares : squares.flatten(0, axis - 1).sum(0);
    (axis == chunked ? sums[axis].narrow(0, first, part.size(0)) : sums[axis]).add_(part);
    squares = squares.sum(axis);
  }
}

Squares none(at::IntArrayRef sizes) {
  Squares out;
  for (const int64_t size : sizes)
    for (auto* sums : {&out.difference, &out.reference}) sums->push_back(at::zeros(size, at::kDouble));
  return out;
}

at::Tensor comparable(const at::Tensor& values) {
  const at::Tensor whole = finite_or_zero(raised(values));
  return at::isFloatingType(whole.scalar_type()) || whole.is_complex() ? whole : whole.to(at::kDouble);
}

// Of elements all over the tensor: a step that has no divisor in common with its size meets each once.
Squares sampled(const at::Tensor& reference, const at::Tensor& candidate) {
  const int64_t n = reference.numel();
  auto step = static_cast<int64_t>(.618 * static_cast<double>(n)) | 1;
  while (std::gcd(step, n) != 1) step += 2;
  at::Tensor at = at::empty(kSample, at::kLong);
  int64_t place = 0;
  for (auto& index : std::span(at.mutable_data_ptr<int64_t>(), kSample)) {
    index = place;
    place = (place + step) % n;
  }
  const at::Tensor r = comparable(reference.take(at)), c = comparable(candidate.take(at));
  const at::Tensor own = r.abs().square(), off = (c.to(r.scalar_type()) - r).abs().square();
  Squares out = none(reference.sizes());
  for (int64_t axis = reference.dim() - 1; axis >= 0; --axis) {
    const at::Tensor here = at.remainder(reference.size(axis));
    out.reference[axis].index_add_(0, here, own);
    out.difference[axis].index_add_(0, here, off);
    at = at.div(reference.size(axis), "floor");
  }
  return out;
}

Squares squares_of(const at::Tensor& reference, const at::Tensor& candidate) {
  Squares out = none(reference.sizes());
  const auto sizes = reference.sizes();
  const int64_t chunked = std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
  const int64_t step = std::max<int64_t>(1, kChunk / std::max<int64_t>(1, reference.numel() / sizes[chunked]));
  for (int64_t first = 0; first < sizes[chunked]; first += step) {
    const int64_t count = std::min(step, sizes[chunked] - first);
    const at::Tensor r = comparable(reference.narrow(chunked, first, count));
    add(out.reference, r, first, chunked);
    add(out.difference, comparable(candidate.narrow(chunked, first, count)).to(r.scalar_type()) - r, first, chunked);
  }
  return out;
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
std::vector<int64_t> fewest(const at::Tensor& difference, const at::Tensor& reference, double share) {
  const int64_t size = difference.size(0);
  const double *d = difference.const_data_ptr<double>(), *r = reference.const_data_ptr<double>();
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

bool may_be_concentrated(const at::Tensor& reference, const at::Tensor& candidate) {
  if (reference.numel() <= kSample) return true;
  const Squares some = sampled(reference, candidate);
  if (!(some.difference[0].sum().item<double>() > 0)) return true;  // few elements: the sample has none of them
  for (size_t axis = 0; axis < some.difference.size(); ++axis)
    if (!fewest(some.difference[axis], some.reference[axis], kLikely).empty()) return true;
  return false;
}

}  // namespace

std::optional<Concentration> concentration(const at::Tensor& reference, const at::Tensor& candidate) {
  if (reference.sizes() != candidate.sizes()) throw Error("concentration: the shapes differ");
  if (reference.dim() == 0 || reference.numel() == 0) return std::nullopt;
  if (!may_be_concentrated(reference, candidate)) return std::nullopt;
  const Squares squares = squares_of(reference, candidate);
  if (!(squares.difference[0].sum().item<double>() > 0)) return std::nullopt;
  Concentration out{1, ""};
  std::vector<std::string> indices;
  for (int64_t axis = 0; axis < reference.dim(); ++axis) {
    const std::vector<int64_t> places = fewest(squares.difference[axis], squares.reference[axis], kNearlyAll);
    indices.push_back(places.empty() ? ":" : slice(places, reference.size(axis)));
    if (!places.empty()) out.share -= 1 - kNearlyAll;
  }
  while (!indices.empty() && indices.back() == ":") indices.pop_back();
  if (indices.empty()) return std::nullopt;
  out.indices = fmt::format("[{}]", fmt::join(indices, ", "));
  return out;
}

}  // namespace parity
