// Differences on a device: a sorted sample (CUB), histograms over intervals, and the few that are left of one. Counts
// are integers and what is gathered is sorted, so nothing depends on the grid.
#include <cub/device/device_radix_sort.cuh>

#include <algorithm>

#include "kernels/cuda/device_memory.cuh"
#include "kernels/cuda/device_ranks.cuh"
#include "kernels/cuda/device_sums.cuh"

namespace parity::kernels::cuda {
namespace {

constexpr int kBlock = 512;

__global__ void __launch_bounds__(kBlock) take_all(Pair pair, double* out) {
  const int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i < pair.n) out[i] = distance_at(pair, i);
}

__global__ void __launch_bounds__(kBlock) take_sample(Pair pair, uint32_t* out) {
  const int64_t k = int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (k < kSample) out[k] = sample_key(distance_at(pair, sampled_place(k, pair.n)));
}

struct Quantiles {
  double q[kBands];
};

/// What was not finite is sorted last: a thread for each band looks for the first.
__global__ void choose_bands(const uint32_t* keys, Quantiles quantiles, Bands* out) {
  int64_t low = 0, high = kSample;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (keys[middle] != ~uint32_t{0})
      low = middle + 1;
    else
      high = middle;
  }
  out->band[threadIdx.x] = band_around(keys, low, quantiles.q[threadIdx.x]);
}

/// Counts in the block's own bins first.
__global__ void __launch_bounds__(kBlock) count_bins(Differences differences, Interval interval, Count* counts) {
  __shared__ unsigned bins[kBins];
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kBlock) bins[i] = 0;
  __syncthreads();
  const int64_t step = int64_t{gridDim.x} * kBlock;
  for (int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x; i < differences.n; i += step)
    if (const int bin = bin_of(differences[i], interval); bin >= 0) atomicAdd(&bins[bin], 1U);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kBlock)
    if (bins[i] != 0) atomicAdd(&counts[i], Count{bins[i]});
}

/// A row of blocks for each band.
__global__ void __launch_bounds__(kBlock) count_kept(const Bands* bands, Kept kept, unsigned* counts) {
  __shared__ unsigned bins[kBins];
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kBlock) bins[i] = 0;
  __syncthreads();
  const int b = static_cast<int>(blockIdx.y);
  const Interval interval = interval_of(bands->band[b]);
  const auto count = static_cast<int64_t>(min(kept.counts[b], static_cast<Count>(kept.capacity)));
  for (int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x; i < count; i += int64_t{gridDim.x} * kBlock)
    if (const int bin = bin_of(kept.values[b][i], interval); bin >= 0) atomicAdd(&bins[bin], 1U);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kBlock)
    if (bins[i] != 0) atomicAdd(&counts[b * kBins + i], bins[i]);
}

__global__ void __launch_bounds__(kBlock)
    gather_bins(Differences differences, Interval interval, int64_t capacity, Count* count, double* out) {
  const int64_t step = int64_t{gridDim.x} * kBlock;
  for (int64_t i = int64_t{blockIdx.x} * kBlock + threadIdx.x; i < differences.n; i += step) {
    const double d = differences[i];
    if (bin_of(d, interval) < 0) continue;
    if (const Count at = atomicAdd(count, Count{1}); at < static_cast<Count>(capacity)) out[at] = d;
  }
}

unsigned blocks_for(int64_t n) { return static_cast<unsigned>((n + kBlock - 1) / kBlock); }

template <class T>
void start_sort(const T* from, T* to, int64_t count) {
  size_t bytes = 0;
  check(cub::DeviceRadixSort::SortKeys(nullptr, bytes, from, to, count, 0, 8 * sizeof(T), kStream), "planning a sort");
  const DeviceArray<unsigned char> scratch(static_cast<int64_t>(bytes));
  check(cub::DeviceRadixSort::SortKeys(scratch.get(), bytes, from, to, count, 0, 8 * sizeof(T), kStream), "sorting");
}

template <class Kernel>
unsigned grid_of(Kernel kernel, int64_t n) {
  const int64_t enough = (n + kBlock - 1) / kBlock;
  return static_cast<unsigned>(
      std::clamp<int64_t>(enough, 1, busy_blocks(reinterpret_cast<const void*>(kernel), kBlock)));
}

}  // namespace

void start_sorting(const Pair& pair, double* out) {
  const DeviceArray<double> taken(pair.n);
  take_all<<<blocks_for(pair.n), kBlock, 0, kStream>>>(pair, taken.get());
  check(cudaGetLastError(), "taking differences");
  start_sort(taken.get(), out, pair.n);
}

void start_bands(const Pair& pair, const std::vector<double>& quantiles, Bands* out) {
  const DeviceArray<uint32_t> taken(kSample), sorted(kSample);
  take_sample<<<blocks_for(kSample), kBlock, 0, kStream>>>(pair, taken.get());
  check(cudaGetLastError(), "taking a sample");
  start_sort(taken.get(), sorted.get(), kSample);
  Quantiles wanted{};
  std::copy_n(quantiles.begin(), kBands, wanted.q);
  choose_bands<<<1, kBands, 0, kStream>>>(sorted.get(), wanted, out);
  check(cudaGetLastError(), "choosing bands");
}

void start_counting(const Bands* bands, const Kept& kept, unsigned* counts) {
  const dim3 grid(grid_of(count_kept, kept.capacity / 4), kBands);  // a quarter is kept of what there is room for
  count_kept<<<grid, kBlock, 0, kStream>>>(bands, kept, counts);
  check(cudaGetLastError(), "counting what was kept");
}

std::vector<int64_t> counts_in(const Interval& interval, const Differences& differences) {
  const DeviceArray<Count> counts(kBins);
  set_to_zero(counts.get(), kBins);
  count_bins<<<grid_of(count_bins, differences.n), kBlock, 0, kStream>>>(differences, interval, counts.get());
  check(cudaGetLastError(), "starting a histogram");
  std::vector<Count> found(interval.bins);
  to_host(counts.get(), static_cast<int64_t>(interval.bins), found.data());
  return {found.begin(), found.end()};
}

std::vector<double> gathered(const Interval& interval, const Differences& differences, int64_t count) {
  const DeviceArray<double> values(count);
  const DeviceArray<Count> found(1);
  set_to_zero(found.get(), 1);
  gather_bins<<<grid_of(gather_bins, differences.n), kBlock, 0, kStream>>>(differences, interval, count, found.get(),
                                                                           values.get());
  check(cudaGetLastError(), "gathering");
  std::vector<double> out(static_cast<size_t>(count));
  to_host(values.get(), count, out.data());
  return out;
}

}  // namespace parity::kernels::cuda
