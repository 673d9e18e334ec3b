// What a recording of statistics keeps of a tensor (FORMAT.md, `stats`).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "block_sums.hpp"
#include "elements.hpp"
#include "workers.hpp"

namespace parity::probe {

/// Of the finite elements. A block's moments are its own, and joined with those of the blocks before (Chan, Golub and
/// LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979): nothing cancels, and no
/// element waits for a division.
struct Statistics {
  static constexpr std::size_t kBlock = 1024, kLanes = 8;  // elements; sums that do not wait for each other
  static constexpr std::size_t kSingles = 4096;            // elements of a block of float32: 16 KiB
  static constexpr double kKept = 0x1p-12;                 // of squares: below it too much of float64's 53 bits cancels
  std::int64_t count = 0, nan = 0, infinite = 0, zero = 0;  // count: all elements
  double mean = 0, deviations = 0, mean_abs = 0, minimum = std::numeric_limits<double>::infinity(), maximum = -minimum;

  /// `n` > 0 elements of a type.
  void add(const char* at, Dtype dtype, std::size_t n) {
    float room[kBlock];
    double wide[kBlock];
    const std::size_t most = dtype.kind == Kind::real && dtype.size == sizeof(float) ? kSingles : kBlock;
    for (std::size_t i = 0; i < n; i += most) {
      const std::size_t some = std::min(most, n - i);
      const char* from = at + i * dtype.size;
      if (are_singles(dtype)) {
        add_singles(singles(from, dtype, some, room), some);
      } else {
        doubles(from, dtype, some, wide);
        add(wide, some);
      }
    }
  }

  /// float32: in one pass when float64 sums of squares say enough, else about their mean.
  void add_singles(const char* x, std::size_t n) {
    const BlockSums sums = block_sums(x, n);
    Statistics block;
    block.count = static_cast<std::int64_t>(n), block.zero = sums.zero;
    block.mean = sums.sum / static_cast<double>(n), block.mean_abs = sums.magnitudes / static_cast<double>(n);
    block.deviations = sums.squares - sums.sum * block.mean, block.minimum = sums.minimum, block.maximum = sums.maximum;
    const bool whole = std::isfinite(sums.magnitudes), constant = sums.minimum == sums.maximum;
    if (constant) block.mean = block.minimum, block.mean_abs = std::abs(block.mean), block.deviations = 0;
    if (whole && (constant || block.deviations > kKept * sums.squares)) return join(block);
    double wide[kBlock];
    for (std::size_t i = 0; i < n; i += kBlock) {
      const std::size_t some = std::min(kBlock, n - i);
      doubles(x + i * sizeof(float), f32, some, wide);
      add(wide, some);
    }
  }

  /// `x` is written over; at most kBlock elements.
  void add(double* x, std::size_t n) {
    Statistics block;
    const std::size_t kept = all_finite(x, n) ? n : block.keep_finite(x, n);
    block.count = static_cast<std::int64_t>(n);
    if (kept > 0) block.set_moments(x, kept);
    join(block);
  }

  /// The elements of another one, too. Of three or more the order is part of the result.
  void join(const Statistics& other) {
    const auto before = static_cast<double>(finite()), more = static_cast<double>(other.finite());
    count += other.count, nan += other.nan, infinite += other.infinite, zero += other.zero;
    if (more == 0) return;
    const double step = other.mean - mean, share = more / (before + more);
    deviations += other.deviations + step * step * before * share;
    mean += step * share, mean_abs += (other.mean_abs - mean_abs) * share;
    minimum = std::min(minimum, other.minimum), maximum = std::max(maximum, other.maximum);
  }

  void set_moments(const double* x, std::size_t n) {
    double sums[kLanes] = {}, magnitudes[kLanes] = {}, squares[kLanes] = {}, low[kLanes], high[kLanes];
    std::int64_t zeros[kLanes] = {};
    for (std::size_t k = 0; k < kLanes; ++k) low[k] = minimum, high[k] = maximum;
    in_lanes(n, [&](std::size_t k, std::size_t i) {
      sums[k] += x[i], magnitudes[k] += std::abs(x[i]), zeros[k] += x[i] == 0;
      low[k] = x[i] < low[k] ? x[i] : low[k], high[k] = x[i] > high[k] ? x[i] : high[k];
    });
    mean = total(sums) / static_cast<double>(n), mean_abs = total(magnitudes) / static_cast<double>(n);
    in_lanes(n, [&](std::size_t k, std::size_t i) { squares[k] += (x[i] - mean) * (x[i] - mean); });
    deviations = total(squares);
    for (std::size_t k = 0; k < kLanes; ++k)
      zero += zeros[k], minimum = std::min(minimum, low[k]), maximum = std::max(maximum, high[k]);
  }

  static bool all_finite(const double* x, std::size_t n) {
    double nothing[kLanes] = {};  // NaN times 0, and infinity times 0, are NaN
    in_lanes(n, [&](std::size_t k, std::size_t i) { nothing[k] += x[i] * 0; });
    return total(nothing) == 0;
  }
  std::size_t keep_finite(double* x, std::size_t n) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double value = x[i];
      x[kept] = value, nan += std::isnan(value), infinite += std::isinf(value), kept += std::isfinite(value);
    }
    return kept;
  }

  template <class F>
  static void in_lanes(std::size_t n, F f) {
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      for (std::size_t k = 0; k < kLanes; ++k) f(k, i + k);
    for (; i < n; ++i) f(i % kLanes, i);
  }
  static double total(const double (&lanes)[kLanes]) {
    double sum = 0;
    for (const double lane : lanes) sum += lane;
    return sum;
  }

  std::int64_t finite() const { return count - nan - infinite; }

  /// Numbers that do not exist are null. `std` divides by the number of elements.
  std::string json() const {
    const auto number = [this](double x) {
      char text[32];
      std::snprintf(text, sizeof text, "%.17g", x);
      return finite() > 0 && std::isfinite(x) ? std::string(text) : std::string("null");
    };
    return "{\"count\":" + std::to_string(count) + ",\"nan\":" + std::to_string(nan) +
           ",\"inf\":" + std::to_string(infinite) + ",\"zero\":" + std::to_string(zero) + ",\"mean\":" + number(mean) +
           ",\"std\":" + number(std::sqrt(deviations / static_cast<double>(finite()))) +
           ",\"mean_abs\":" + number(mean_abs) + ",\"min\":" + number(minimum) + ",\"max\":" + number(maximum) + "}";
  }
};

/// Of `count` elements that lie together, in any order. The same number for any number of threads: each looks at parts
/// of one size.
inline Statistics statistics_of(const char* data, Dtype dtype, std::size_t count, Workers& workers) {
  constexpr std::size_t kPart = std::size_t{1} << 17;
  std::vector<Statistics> parts((count + kPart - 1) / kPart);
  workers.each(parts.size(), [&](std::size_t i) {
    parts[i].add(data + i * kPart * dtype.size, dtype, std::min(kPart, count - i * kPart));
  });
  Statistics all;
  for (const Statistics& part : parts) all.join(part);
  return all;
}

}  // namespace parity::probe
