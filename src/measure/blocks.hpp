// How measuring walks over a pair of tensors: block by block, each with its sums, whatever the dtypes. Private to
// src/measure.
#pragma once
#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "kernels/cpu/compare_block.hpp"

namespace parity {

using kernels::kBlock;
inline constexpr int64_t kThreadShare = 64 * kBlock;  // what one thread takes at a time

/// Any supported tensor as a dense array of reals in memory order of its shape: on the CPU, contiguous, complex as
/// pairs. Throws Error for layouts and dtypes without a meaning here (sparse, quantised).
at::Tensor dense_reals(const at::Tensor& tensor, const char* side);

/// The address of element `begin` of a tensor from `dense_reals`.
inline const char* at_element(const at::Tensor& dense, int64_t begin) {
  return static_cast<const char*>(dense.const_data_ptr()) + begin * dense.element_size();
}

/// Elements [begin, begin + n) of a tensor from `dense_reals`, exactly, as T: double for floats, long double (64 bits
/// of significand) for anything.
template <class T>
void load(const at::Tensor& dense, int64_t begin, int64_t n, T* out);

/// Element number `place` of a tensor of this shape, axis by axis.
std::vector<int64_t> index_of(int64_t place, at::IntArrayRef shape);

/// May a sum of squares in double, beside that of the magnitudes, have lost elements? Beyond 1e300 it leaves double's
/// range; below 1e-200 an element's square may have become zero unnoticed.
inline bool squares_lost(double squares, double sum) { return !(squares < 1e300) || (sum > 0 && squares < 1e-200); }

/// Sums over finite pairs. T = double; long double where squares of doubles leave its range and for integers.
template <class T>
struct Totals {
  T max_d = 0, sum_d = 0, sum_dd = 0, sum_r = 0, sum_rr = 0, sum_cc = 0, sum_rc = 0, sum_dr = 0;
  int64_t worst_block = -1;  // first element of the first block that has max_d
  int64_t finite = 0, special_reference = 0, special_candidate = 0, special_mismatch = 0;
  int64_t zeros = 0, equal = 0;
  uint64_t max_ulp = 0;
  bool bits_known =
      true;  // false: equal and max_ulp mean nothing (the candidate is not exact in the reference's dtype)

  void merge(const Totals& later);
};

inline constexpr int64_t kKept = 4 * kBlock;  // |d| of several blocks are looked at together: few of each are wanted
inline constexpr int64_t kKeptSpill = 64;     // room behind them, for kernels that take whole words

/// One thread's working memory for a block.
template <class T>
struct BlockScratch {
  alignas(64) std::array<T, kBlock> reference, candidate;  // finite pairs only; not set where the fast route ran
  alignas(64) std::array<double, static_cast<size_t>(kKept + kBlock + kKeptSpill)> kept;
  int64_t kept_count = 0;
  std::optional<double> above;  // which |d| are kept, in any order: those greater (below 0: all); none without it
};

/// Elements [begin, begin + n), n <= kBlock, of two tensors from `dense_reals` with the same number of elements. Adds
/// to `scratch.kept`, where there must be room for n.
template <class T>
Totals<T> measure_block(const at::Tensor& reference, const at::Tensor& candidate, int64_t begin, int64_t n,
                        BlockScratch<T>& scratch);

class DifferenceRanks;

/// All blocks, merged in their order: the same digits for any thread count. `ranks`, if not null, sees the |d| that it
/// asks for.
template <class T>
Totals<T> measure_blocks(const at::Tensor& reference, const at::Tensor& candidate, DifferenceRanks* ranks);

/// Calls `visit(task, abs_d, n)` with |d| of every block's finite pairs; `task`, below kTasks and the number of blocks,
/// tells concurrent calls apart.
/// `wide`: in long double, as measure_blocks<long double>.
inline constexpr int64_t kTasks = 64;
void visit_differences(const at::Tensor& reference, const at::Tensor& candidate, bool wide,
                       const std::function<void(int64_t task, const double* abs_d, int64_t n)>& visit);

}  // namespace parity
