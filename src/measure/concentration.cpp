#include "measure/concentration.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/error.hpp"
#include "measure/local.hpp"

namespace parity {
namespace {

constexpr double kNearlyAll = .99, kMostOfReference = .75;
constexpr int64_t kChunk = 1 << 22;  // elements that are raised to fp64 at once
constexpr size_t kMostListed = 4;    // places without a rule, one by one

// By axis: what each of its places holds of the squares.
struct Squares {
  std::vector<at::Tensor> difference, reference;
};

void add(std::vector<at::Tensor>& sums, const at::Tensor& values, int64_t first, int64_t chunked) {
  const at::Tensor squares = values.is_complex() ? values.abs().square() : values.square();
  for (int64_t axis = 0; axis < squares.dim(); ++axis) {
    std::vector<int64_t> others(squares.dim());
    std::iota(others.begin(), others.end(), 0);
    others.erase(others.begin() + axis);
    const at::Tensor part = others.empty() ? squares : squares.sum(others);
    at::Tensor& sum = sums[axis];
    (axis == chunked ? sum.narrow(0, first, part.size(0)) : sum).add_(part);
  }
}

Squares squares_of(const at::Tensor& reference, const at::Tensor& candidate) {
  Squares out;
  for (const int64_t size : reference.sizes())
    for (auto* sums : {&out.difference, &out.reference}) sums->push_back(at::zeros(size, at::kDouble));
  const auto sizes = reference.sizes();
  const int64_t chunked = std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
  const int64_t step = std::max<int64_t>(1, kChunk / std::max<int64_t>(1, reference.numel() / sizes[chunked]));
  for (int64_t first = 0; first < sizes[chunked]; first += step) {
    const int64_t count = std::min(step, sizes[chunked] - first);
    const at::Tensor r = finite_or_zero(raised(reference.narrow(chunked, first, count)));
    const at::Tensor c = finite_or_zero(raised(candidate.narrow(chunked, first, count)));
    const at::Tensor whole = at::isFloatingType(r.scalar_type()) || r.is_complex() ? r : r.to(at::kDouble);
    add(out.reference, whole, first, chunked);
    add(out.difference, c.to(whole.scalar_type()) - whole, first, chunked);
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

// The fewest places of an axis that hold nearly all; empty where these are more than half of it.
std::vector<int64_t> fewest(const at::Tensor& difference, const at::Tensor& reference) {
  const int64_t size = difference.size(0);
  const double *d = difference.const_data_ptr<double>(), *r = reference.const_data_ptr<double>();
  const double all = std::accumulate(d, d + size, 0.0), norm = std::accumulate(r, r + size, 0.0);
  std::vector<int64_t> places(size);
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) { return d[a] > d[b]; });
  double held = 0, own = 0;
  for (int64_t i = 0; i < size / 2; ++i) {
    held += d[places[i]], own += r[places[i]];
    if (held < kNearlyAll * all) continue;
    places.resize(i + 1);
    std::sort(places.begin(), places.end());
    return own > kMostOfReference * norm ? std::vector<int64_t>() : places;
  }
  return {};
}

}  // namespace

std::optional<Concentration> concentration(const at::Tensor& reference, const at::Tensor& candidate) {
  if (reference.sizes() != candidate.sizes()) throw Error("concentration: the shapes differ");
  if (reference.dim() == 0 || reference.numel() == 0) return std::nullopt;
  const Squares squares = squares_of(reference, candidate);
  if (!(squares.difference[0].sum().item<double>() > 0)) return std::nullopt;
  Concentration out{1, ""};
  std::vector<std::string> indices;
  for (int64_t axis = 0; axis < reference.dim(); ++axis) {
    const std::vector<int64_t> places = fewest(squares.difference[axis], squares.reference[axis]);
    indices.push_back(places.empty() ? ":" : slice(places, reference.size(axis)));
    if (!places.empty()) out.share -= 1 - kNearlyAll;
  }
  while (!indices.empty() && indices.back() == ":") indices.pop_back();
  if (indices.empty()) return std::nullopt;
  out.indices = fmt::format("[{}]", fmt::join(indices, ", "));
  return out;
}

}  // namespace parity
