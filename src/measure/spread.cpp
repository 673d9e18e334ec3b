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

// floor(log2 x) of x >= 0.
int exponent(double x) {
  const int stored = static_cast<int>(std::bit_cast<uint64_t>(x) >> 52);
  return stored > 0 ? stored - 1023 : x > 0 ? std::ilogb(x) : kLowest;
}

/// floor(log2(d / unit)). The quotient's exponent is the difference of the two, less one where d has the smaller
/// fraction: no division (and no rounding, which never reaches the next power of two from below).
class ExponentOver {
 public:
  explicit ExponentOver(double unit) : unit_(unit) {
    const auto bits = std::bit_cast<uint64_t>(unit);
    fraction_ = static_cast<int64_t>(bits & ((uint64_t{1} << 52) - 1));
    stored_ = static_cast<int64_t>(bits >> 52);
  }
  int of(double d) const {
    if (d < std::numeric_limits<double>::min() || stored_ == 0) return std::max(exponent(d / unit_), kLowest);
    const auto e = ((std::bit_cast<int64_t>(d) - fraction_) >> 52) - stored_;
    return static_cast<int>(std::clamp<int64_t>(e, kLowest, kHighest));
  }

 private:
  double unit_;
  int64_t fraction_, stored_;
};

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

SpreadCounts count_exponents(const at::Tensor& r, const at::Tensor& c, bool wide, double rms) {
  std::vector<SpreadCounts> parts(static_cast<size_t>(std::min(kTasks, blocks_of(r))));  // of 17 kB each
  const ExponentOver over(rms);
  visit_differences(r, c, wide, [&](int64_t task, const double* abs_d, int64_t n) {
    SpreadCounts& mine = parts[static_cast<size_t>(task)];
    for (int64_t i = 0; i < n; ++i) {
      const double d = abs_d[i];
      if (!(d <= std::numeric_limits<double>::max())) continue;  // too large for a double
      mine.equal += d == 0;
      mine.by_exponent[static_cast<size_t>(over.of(d) - kLowest)] += d != 0;
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
  const SpreadCounts all = count_exponents(r, c, std::is_same_v<T, long double>, rms);
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

struct LargeDifference {
  double distance;
  int64_t at;
  double reference, candidate;
};

/// The largest so far, largest first, of equal ones the earlier first.
class Largest {
 public:
  explicit Largest(size_t most) : most_(most) {}
  /// What is not greater does not come in.
  double bar() const { return kept_.size() == most_ ? kept_.back().distance : 0; }
  void add(const LargeDifference& place) {
    if (!(place.distance > bar())) return;
    kept_.insert(std::upper_bound(kept_.begin(), kept_.end(), place.distance,
                                  [](double x, const LargeDifference& p) { return x > p.distance; }),
                 place);
    if (kept_.size() > most_) kept_.pop_back();
  }
  const std::vector<LargeDifference>& kept() const { return kept_; }

 private:
  size_t most_;
  std::vector<LargeDifference> kept_;
};

/// Of the blocks [first, last). The sums of a block, made many elements at a time, say whether one of it comes in.
template <class T>
void add_largest(const at::Tensor& r, const at::Tensor& c, int64_t first, int64_t last, Largest& largest) {
  const auto scratch = std::make_unique_for_overwrite<BlockScratch<T>>();
  for (int64_t b = first; b < last; ++b) {
    const int64_t n = std::min(kBlock, r.numel() - b * kBlock);
    const auto block = measure_block(r, c, b * kBlock, n, *scratch);
    if (block.finite == n && !(static_cast<double>(block.max_d) > largest.bar())) continue;
    visit_pairs<T>(r, c, b, b + 1, [&](int64_t begin, int64_t count, const T* mine, const T* theirs) {
      for (int64_t i = 0; i < count; ++i)
        largest.add(
            {distance(mine[i], theirs[i]), begin + i, static_cast<double>(mine[i]), static_cast<double>(theirs[i])});
    });
  }
}

template <class T>
std::vector<LargeDifference> largest(const at::Tensor& r, const at::Tensor& c, size_t most) {
  const int64_t blocks = blocks_of(r), tasks = std::min(kTasks, blocks);
  std::vector<Largest> parts(static_cast<size_t>(tasks), Largest(most));
  at::parallel_for(0, tasks, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task)
      add_largest<T>(r, c, blocks * task / tasks, blocks * (task + 1) / tasks, parts[static_cast<size_t>(task)]);
  });
  Largest all(most);
  for (const Largest& part : parts)
    for (const LargeDifference& place : part.kept()) all.add(place);
  return all.kept();
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
  for (const LargeDifference& place : floats ? largest<double>(r, c, most) : largest<long double>(r, c, most)) {
    const int64_t at = reference.is_complex() ? place.at / 2 : place.at;
    out.push_back({index_of(at, reference.sizes()), place.reference, place.candidate});
  }
  return out;
}

}  // namespace parity
