// Exact ranks of |d|: histograms over the digits of its bits narrow each rank down until few differences are left,
// which are gathered and sorted (CUB). Counts are integers, so their order is free; nothing depends on the grid.
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include <algorithm>

#include "kernels/cuda/compare.hpp"
#include "kernels/cuda/device_memory.cuh"
#include "kernels/cuda/rank_search.hpp"

namespace parity::kernels::cuda {
namespace {

constexpr int64_t kGather = int64_t{1} << 20;  // so many differences are gathered and sorted: 8 MiB
constexpr int kHistogramThreads = 512;
using Count = unsigned long long;  // atomicAdd has no int64_t

/// Counts the next digit of the differences that begin with `prefix`, first in the block's own bins.
__global__ void __launch_bounds__(kHistogramThreads) count_digits(Pair pair, Prefix prefix, Count* counts) {
  __shared__ unsigned bins[kBins];
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kHistogramThreads) bins[i] = 0;
  __syncthreads();
  const int64_t step = int64_t{gridDim.x} * kHistogramThreads;
  for (int64_t i = int64_t{blockIdx.x} * kHistogramThreads + threadIdx.x; i < pair.n; i += step) {
    const double d = distance_at(pair, i);
    if (begins_with(d, prefix)) atomicAdd(&bins[next_digit(d, prefix)], 1U);
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kHistogramThreads)
    if (bins[i] != 0) atomicAdd(&counts[i], static_cast<Count>(bins[i]));
}

struct DistanceOf {
  Pair pair;
  __device__ double operator()(int64_t i) const { return distance_at(pair, i); }
};
struct BeginsWith {
  Prefix prefix;
  __device__ bool operator()(double d) const { return begins_with(d, prefix); }
};

std::vector<int64_t> digit_counts(const Pair& pair, const Prefix& prefix) {
  const DeviceArray<Count> counts(kBins);
  check(cudaMemset(counts.get(), 0, kBins * sizeof(Count)), "clearing memory");
  const int blocks = busy_blocks(reinterpret_cast<const void*>(count_digits), kHistogramThreads);
  count_digits<<<static_cast<unsigned>(blocks), kHistogramThreads>>>(pair, prefix, counts.get());
  check(cudaGetLastError(), "starting a histogram");
  std::vector<Count> found(kBins);
  to_host(counts.get(), kBins, found.data());
  return {found.begin(), found.end()};
}

/// Those that begin with `prefix`, ascending; they are `count`.
std::vector<double> gathered(const Pair& pair, const Prefix& prefix, int64_t count) {
  const DeviceArray<double> left(count), sorted(count);
  const DeviceArray<int64_t> selected(1);
  const auto all = thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), DistanceOf{pair});
  size_t bytes = 0, more = 0;
  check(cub::DeviceSelect::If(nullptr, bytes, all, left.get(), selected.get(), pair.n, BeginsWith{prefix}),
        "planning a selection");
  check(cub::DeviceRadixSort::SortKeys(nullptr, more, left.get(), sorted.get(), count), "planning a sort");
  const DeviceArray<unsigned char> scratch(static_cast<int64_t>(std::max(bytes, more)));
  check(cub::DeviceSelect::If(scratch.get(), bytes, all, left.get(), selected.get(), pair.n, BeginsWith{prefix}),
        "selecting");
  check(cub::DeviceRadixSort::SortKeys(scratch.get(), more, left.get(), sorted.get(), count), "sorting");
  std::vector<double> out(static_cast<size_t>(count));
  to_host(sorted.get(), count, out.data());
  return out;
}

}  // namespace

std::vector<double> ranks(const Pair& pair, int64_t finite, const std::vector<int64_t>& wanted, int device) {
  const OnDevice here(device);
  RankSearch search(
      finite, kGather, [&](const Prefix& prefix) { return digit_counts(pair, prefix); },
      [&](const Prefix& prefix, int64_t count) { return gathered(pair, prefix, count); });
  std::vector<double> out;
  for (const int64_t rank : wanted) {
    if (rank < 0 || rank >= finite) throw Error("CUDA kernels were asked for a rank that the pair does not have");
    out.push_back(search.at(rank));
  }
  return out;
}

}  // namespace parity::kernels::cuda
