// Statistics of a pair of tensors that lie on a CUDA device, computed there. Private to src/measure.
#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <optional>
#include <vector>

#include "core/stats.hpp"
#include "kernels/cuda/compare.hpp"
#include "measure/blocks.hpp"

namespace parity {

/// What `measure` (`ranked`) or `measure_sums` give, in one pass and without a copy to the host; nullopt where that is
/// the CPU's to do: a tensor lies elsewhere, this program has no CUDA kernels, the pair is empty or has other dtypes
/// than floats, shapes differ, or squares leave a double's range (measured in long double).
std::optional<Stats> measured_on_device(const at::Tensor& reference, const at::Tensor& candidate, bool ranked);

/// The differences |d| of these ranks (0 = the smallest) among the finite pairs.
using RankSource = std::function<std::vector<double>(const std::vector<int64_t>& ranks)>;

/// Two contiguous tensors of the same shape, in whosever memory, as the kernels take them; nullopt for other dtypes.
std::optional<kernels::cuda::Pair> device_pair(const at::Tensor& reference, const at::Tensor& candidate);

/// Statistics from a pair's sums, without percentiles and worst element if `ranks` is null; nullopt as above.
std::optional<Stats> statistics_of(const kernels::cuda::PairResult& result, at::IntArrayRef shape,
                                   const RankSource& ranks);

/// measure.cpp's formulas.
void set_statistics_of(const Totals<double>& totals, Stats& out);

}  // namespace parity
