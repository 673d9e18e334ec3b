// One pass over a pair: a block sums whole tiles, further kernels merge the tiles' sums. No atomics: the order of
// every sum is that of order.hpp, whatever the grid.
#include <algorithm>

#include "kernels/cuda/device_memory.cuh"
#include "kernels/cuda/device_sums.cuh"
#include "kernels/cuda/order.hpp"

namespace parity::kernels::cuda {
namespace {

/// All threads' shares merged; what the first thread gets is the total.
__device__ PairTotals tree(PairTotals share) {
  __shared__ alignas(PairTotals) unsigned char memory[kThreads / 2 * sizeof(PairTotals)];
  auto* shares = reinterpret_cast<PairTotals*>(memory);
  const int thread = static_cast<int>(threadIdx.x);
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread >= half && thread < 2 * half) shares[thread - half] = share;
    __syncthreads();
    if (thread < half) merge(share, shares[thread]);
    __syncthreads();
  }
  return share;
}

constexpr unsigned kHeld = 384;  // of a tile for a band: 2.3 %, where about 0.6 % lie in one

/// What a block has kept of a tile, in its shared memory.
struct Held {
  unsigned counts[kBands];
  Count places[kBands];
  double values[kBands][kHeld];
};

__device__ void append(const Kept& kept, int band, Count at, double value) {
  if (at < static_cast<Count>(kept.capacity)) kept.values[band][at] = value;
}

struct KeepInBlock {
  static constexpr bool kNothing = false;
  Held* held;
  Kept kept;
  __device__ void operator()(int band, double value) const {
    const unsigned at = atomicAdd(&held->counts[band], 1U);
    if (at < kHeld)
      held->values[band][at] = value;
    else
      append(kept, band, atomicAdd(&kept.counts[band], Count{1}), value);
  }
};

/// From a block's memory to the lists. Begins and ends with a barrier.
__device__ void flush(Held& held, const Kept& kept) {
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();
  if (thread < kBands) held.places[thread] = atomicAdd(&kept.counts[thread], Count{min(held.counts[thread], kHeld)});
  __syncthreads();
  for (int b = 0; b < kBands; ++b)
    for (unsigned i = threadIdx.x; i < min(held.counts[b], kHeld); i += kThreads)
      append(kept, b, held.places[b] + i, held.values[b][i]);
  __syncthreads();
  if (thread < kBands) held.counts[thread] = 0;
  __syncthreads();
}

/// Blocks that share a processor. Of an H100's time for fp32 and bf16, two of batches of 8 that are read ahead took .92
/// and .65 of the memory's pace, three .52 and .39 (no registers left), three without reading ahead .90 and .56.
constexpr int kBlocks = 2;

template <class Types>
__global__ void __launch_bounds__(kThreads, kBlocks) sum_tiles(Pair pair, PairTotals* tiles) {
  KeepNothing keep;
  const Bands none;
  for (int64_t tile = blockIdx.x; tile < tiles_of(pair.n); tile += gridDim.x) {
    const PairTotals total = tree(share_of_tile<Types>(pair, tile, static_cast<int>(threadIdx.x), none, keep));
    if (threadIdx.x == 0) tiles[tile] = total;
  }
}

template <class Types>
__global__ void __launch_bounds__(kThreads, kBlocks)
    sum_and_keep(Pair pair, const Bands* bands, Kept kept, PairTotals* tiles) {
  __shared__ Held held;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kBands) held.counts[thread] = 0;
  __syncthreads();
  KeepInBlock keep{&held, kept};
  const Bands here = *bands;
  for (int64_t tile = blockIdx.x; tile < tiles_of(pair.n); tile += gridDim.x) {
    const PairTotals share = share_of_tile<Types>(pair, tile, thread, here, keep);
    flush(held, kept);
    const PairTotals total = tree(share);
    if (thread == 0) tiles[tile] = total;
  }
}

__global__ void __launch_bounds__(kThreads) sum_groups(const PairTotals* tiles, int64_t count, PairTotals* groups) {
  const PairTotals total = tree(share_of_group(tiles, count, blockIdx.x, static_cast<int>(threadIdx.x)));
  if (threadIdx.x == 0) groups[blockIdx.x] = total;
}

__global__ void __launch_bounds__(kThreads)
    sum_all(Pair pair, const PairTotals* groups, int64_t count, PairResult* out) {
  const PairTotals total = tree(share_of_groups(groups, count, static_cast<int>(threadIdx.x)));
  if (threadIdx.x == 0) *out = finished(pair, total);
}

unsigned grid_of(const void* kernel, int blocks, int64_t tiles) {
  if (blocks < 1) blocks = busy_blocks(kernel, kThreads);
  return static_cast<unsigned>(std::min<int64_t>(blocks, tiles));
}

}  // namespace

void start_sums(const Pair& pair, const Bands* bands, const Kept& kept, int blocks, PairResult* out) {
  const int64_t count = tiles_of(pair.n), groups = groups_of(count);
  const DeviceArray<PairTotals> tiles(count), sums(groups);
  with_types(pair, [&](auto types) {
    using Types = decltype(types);
    if (bands == nullptr) {
      const unsigned grid = grid_of(reinterpret_cast<const void*>(sum_tiles<Types>), blocks, count);
      sum_tiles<Types><<<grid, kThreads, 0, kStream>>>(pair, tiles.get());
    } else {
      const unsigned grid = grid_of(reinterpret_cast<const void*>(sum_and_keep<Types>), blocks, count);
      sum_and_keep<Types><<<grid, kThreads, 0, kStream>>>(pair, bands, kept, tiles.get());
    }
  });
  check(cudaGetLastError(), "starting the sums");
  sum_groups<<<static_cast<unsigned>(groups), kThreads, 0, kStream>>>(tiles.get(), count, sums.get());
  sum_all<<<1, kThreads, 0, kStream>>>(pair, sums.get(), groups, out);
  check(cudaGetLastError(), "starting the sums of the sums");
}

}  // namespace parity::kernels::cuda
