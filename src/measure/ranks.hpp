// Exact percentiles of |d| from the same pass that measures: a sample says where they will lie, the pass keeps what
// falls there. Private to src/measure.
#pragma once
#include <ATen/ATen.h>

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cpu/compare_ranks.hpp"

namespace parity {

/// The percentiles of |d| in a report.
inline constexpr std::array<double, 2> kQuantiles{.95, .99};

/// Where a quantile of n values lies: numpy's 'linear' method, its rounding included.
struct QuantilePlace {
  int64_t rank;     // 0 = the smallest; the next one too where there is one
  double fraction;  // of the way to the next

  QuantilePlace(double quantile, int64_t n);
  double between(std::array<double, 2> neighbours) const;
};

/// The values of rank `rank` (0 = the smallest) and of the next; the same twice for the last. Reorders `values`.
std::array<double, 2> neighbouring_ranks(std::span<double> values, int64_t rank);

class DifferenceRanks {
 public:
  /// `wide` as for measure_blocks.
  explicit DifferenceRanks(bool wide) : wide_(wide) {}

  /// Before the pass: takes a sample of large tensors. Small ones are kept whole.
  void prepare(const at::Tensor& reference, const at::Tensor& candidate, int64_t chunks);
  /// The |d| that it must see: those greater than this, all where it is below 0.
  double above() const { return keep_all_ ? -1 : intervals_[0].low; }
  /// During the pass: n such |d| of `finite` pairs. May write kKeptSpill numbers behind them. One thread at a time per
  /// chunk.
  void see(int64_t chunk, double* abs_d, int64_t n, int64_t finite);
  /// After the pass over `finite` > 0 pairs: 95th and 99th percentile, linear between ranks as np.percentile does.
  std::array<double, 2> percentiles(int64_t finite) const;

 private:
  struct Caught {                                // of a chunk, for each percentile
    std::array<int64_t, 2> not_above{}, tied{};  // how many are <= low, equal tie
    std::array<std::vector<double>, 2> inside;   // the interval's, ties left out
    std::vector<double> all;                     // of a small tensor
  };
  double percentile(size_t which, int64_t finite) const;
  /// The differences of rank `rank` and the next, if the pass kept them.
  std::optional<std::array<double, 2>> kept_ranks(size_t which, int64_t rank, int64_t finite) const;
  std::array<double, 2> percentiles_of_all(int64_t finite) const;
  /// All differences kept that are greater than `low`.
  std::vector<double> all_above(double low) const;

  bool wide_, keep_all_ = true;
  at::Tensor reference_, candidate_;
  // Where the percentiles will lie. Differences of bf16 have few values: the commonest near a percentile, its tie, is
  // counted and not kept.
  std::array<kernels::BlockInterval, 2> intervals_;
  std::vector<Caught> chunks_;
};

/// The differences of rank `rank` and `rank + 1` (0 = the smallest) by repeated passes: slow, and right whatever the
/// data.
std::array<double, 2> select_ranks(const at::Tensor& reference, const at::Tensor& candidate, bool wide, int64_t rank,
                                   int64_t finite);

}  // namespace parity
