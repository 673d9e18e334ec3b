#include "measure/spread.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "measure/blocks.hpp"

namespace parity {
namespace {

constexpr int kLowest = -1074, kHighest = 1024;  // exponents that a double can have
using Counts = std::array<int64_t, kHighest - kLowest + 1>;

struct SpreadCounts {
  Counts by_exponent{};
  int64_t equal = 0;
};

// floor(log2 x) of x > 0. std::ilogb is a call per element, which took four times as long.
int exponent(double x) {
  const int stored = static_cast<int>(std::bit_cast<uint64_t>(x) >> 52);
  return stored > 0 ? stored - 1023 : x > 0 ? std::ilogb(x) : kLowest;
}

bool exact_in_double(at::ScalarType type) { return at::isFloatingType(type) || at::isComplexType(type); }

/// Calls `visit(begin, n, r, c)` for the blocks [first, last) of two tensors from `dense_reals`.
template <class T, class Visit>
void visit_pairs(const at::Tensor& r, const at::Tensor& c, int64_t first, int64_t last, const Visit& visit) {
  std::vector<T> mine(kBlock), theirs(kBlock);
  for (int64_t b = first; b < last; ++b) {
    const int64_t begin = b * kBlock, n = std::min(kBlock, r.numel() - begin);
    load(r, begin, n, mine.data());
    load(c, begin, n, theirs.data());
    visit(begin, n, mine.data(), theirs.data());
  }
}

int64_t blocks_of(const at::Tensor& t) { return (t.numel() + kBlock - 1) / kBlock; }

template <class T>
SpreadCounts count_exponents(const at::Tensor& r, const at::Tensor& c, double rms) {
  const int64_t blocks = blocks_of(r), tasks = std::min(kTasks, blocks);
  std::vector<SpreadCounts> parts(static_cast<size_t>(tasks));
  at::parallel_for(0, tasks, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      SpreadCounts& mine = parts[static_cast<size_t>(task)];
      visit_pairs<T>(r, c, blocks * task / tasks, blocks * (task + 1) / tasks,
                     [&](int64_t, int64_t n, const T* a, const T* b) {
                       for (int64_t i = 0; i < n; ++i) {
                         const T d = std::abs(b[i] - a[i]);
                         if (!(d <= std::numeric_limits<double>::max())) continue;  // NaN or Inf on a side
                         mine.equal += d == 0;
                         const int e = std::clamp(exponent(static_cast<double>(d / rms)), kLowest, kHighest);
                         mine.by_exponent[static_cast<size_t>(e - kLowest)] += d != 0;
                       }
                     });
    }
  });
  SpreadCounts all;
  for (const SpreadCounts& part : parts) {
    all.equal += part.equal;
    for (size_t i = 0; i < all.by_exponent.size(); ++i) all.by_exponent[i] += part.by_exponent[i];
  }
  return all;
}

// Pairs that the norms were summed over.
template <class T>
int64_t finite_pairs(const at::Tensor& r, const at::Tensor& c) {
  int64_t count = 0;
  visit_pairs<T>(r, c, 0, blocks_of(r), [&](int64_t, int64_t n, const T* a, const T* b) {
    for (int64_t i = 0; i < n; ++i) count += std::isfinite(a[i]) && std::isfinite(b[i]);
  });
  return count;
}

template <class T>
std::optional<Histogram> histogram_of(const at::Tensor& r, const at::Tensor& c, const Stats& measured) {
  const bool special = measured.nan_reference > 0 || measured.nan_candidate > 0;
  const auto finite = static_cast<double>(special ? finite_pairs<T>(r, c) : measured.count);
  const double rms = measured.reference_norm / std::sqrt(finite);
  if (!(rms > 0)) return std::nullopt;
  const SpreadCounts all = count_exponents<T>(r, c, rms);
  Histogram out;
  out.equal = all.equal;
  const auto any = [](int64_t n) { return n > 0; };
  const auto& counts = all.by_exponent;
  const auto first = std::find_if(counts.begin(), counts.end(), any);
  if (first == counts.end()) return out;
  const auto last = std::find_if(counts.rbegin(), counts.rend(), any).base();
  out.lowest = static_cast<int>(first - counts.begin()) + kLowest;
  out.counts.assign(first, last);
  return out;
}

// How far apart: infinitely where one side alone is finite, or both are not and differ.
template <class T>
double distance(T a, T b) {
  if (std::isfinite(a) && std::isfinite(b)) return static_cast<double>(std::abs(b - a));
  return a == b || (std::isnan(a) && std::isnan(b)) ? 0 : std::numeric_limits<double>::infinity();
}

struct Place {
  double distance;
  int64_t at;
  double reference, candidate;
};

template <class T>
std::vector<Place> largest(const at::Tensor& r, const at::Tensor& c, size_t most) {
  std::vector<Place> kept;  // largest first
  visit_pairs<T>(r, c, 0, blocks_of(r), [&](int64_t begin, int64_t n, const T* a, const T* b) {
    for (int64_t i = 0; i < n; ++i) {
      const double d = distance(a[i], b[i]);
      if (!(d > (kept.size() == most ? kept.back().distance : 0))) continue;
      const auto place =
          std::upper_bound(kept.begin(), kept.end(), d, [](double x, const Place& p) { return x > p.distance; });
      kept.insert(place, {d, begin + i, static_cast<double>(a[i]), static_cast<double>(b[i])});
      if (kept.size() > most) kept.pop_back();
    }
  });
  return kept;
}

}  // namespace

std::optional<Histogram> difference_histogram(const at::Tensor& reference, const at::Tensor& candidate,
                                              const Stats& measured) {
  const at::Tensor r = dense_reals(reference, "reference"), c = dense_reals(candidate, "candidate");
  if (r.numel() == 0) return std::nullopt;
  const bool floats = exact_in_double(r.scalar_type()) && exact_in_double(c.scalar_type());
  return floats ? histogram_of<double>(r, c, measured) : histogram_of<long double>(r, c, measured);
}

std::vector<Element> worst_elements(const at::Tensor& reference, const at::Tensor& candidate, size_t most) {
  const at::Tensor r = dense_reals(reference, "reference"), c = dense_reals(candidate, "candidate");
  const bool floats = exact_in_double(r.scalar_type()) && exact_in_double(c.scalar_type());
  std::vector<Element> out;
  if (most == 0) return out;
  for (const Place& place : floats ? largest<double>(r, c, most) : largest<long double>(r, c, most)) {
    Element element{std::vector<int64_t>(static_cast<size_t>(reference.dim())), place.reference, place.candidate};
    int64_t at = reference.is_complex() ? place.at / 2 : place.at;
    for (int64_t dim = reference.dim() - 1; dim >= 0; at /= reference.size(dim--))
      element.index[static_cast<size_t>(dim)] = at % reference.size(dim);
    out.push_back(std::move(element));
  }
  return out;
}

}  // namespace parity
