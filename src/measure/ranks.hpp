// Exact percentiles of |d| from the same pass that measures: a sample says where they will lie, the pass keeps what
// falls there. Private to src/measure.
#pragma once
#include <ATen/ATen.h>

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cpu/compare_block.hpp"

namespace parity {

/// The values of rank `rank` (0 = the smallest) and of the next; the same twice for the last. Reorders `values`.
std::array<double, 2> neighbouring_ranks(std::span<double> values, int64_t rank);

class DifferenceRanks {
 public:
  /// `wide` as for measure_blocks.
  explicit DifferenceRanks(bool wide) : wide_(wide) {}

  /// Before the pass: takes a sample of large tensors. Small ones are kept whole.
  void prepare(const at::Tensor& reference, const at::Tensor& candidate, int64_t chunks);
  /// During the pass: |d| of finite pairs. One thread at a time per chunk.
  void see(int64_t chunk, const double* abs_d, int64_t n);
  /// After the pass over `finite` > 0 pairs: 95th and 99th percentile, linear between ranks as np.percentile does.
  std::array<double, 2> percentiles(int64_t finite) const;

 private:
  static constexpr std::array<double, 2> kQuantiles{.95, .99};
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
