// One pass over a pair: a block sums whole tiles, a second kernel merges the tiles' sums. No atomics: the order of
// every sum is that of pair_step.hpp, whatever the grid.
#include <algorithm>

#include "kernels/cuda/compare.hpp"
#include "kernels/cuda/device_memory.cuh"

namespace parity::kernels::cuda {
namespace {

static_assert(kThreads * sizeof(PairTotals) <= 48 << 10, "the sums of a block lie in its shared memory");

/// All threads' shares merged; what the first thread gets is the total.
__device__ PairTotals tree(const PairTotals& share) {
  __shared__ alignas(PairTotals) unsigned char memory[kThreads * sizeof(PairTotals)];
  auto* shares = reinterpret_cast<PairTotals*>(memory);
  const int thread = static_cast<int>(threadIdx.x);
  shares[thread] = share;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) merge_step(shares, half, thread);
    __syncthreads();
  }
  const PairTotals total = shares[0];
  __syncthreads();  // before the next tile's shares
  return total;
}

constexpr int kMixed = -1;

/// `kType`: both sides' element type, known to the compiler, or kMixed.
template <int kType>
__global__ void __launch_bounds__(kThreads) sum_tiles(Pair pair, PairTotals* tiles) {
  if constexpr (kType != kMixed) pair.reference_type = pair.candidate_type = static_cast<Element>(kType);
  for (int64_t tile = blockIdx.x; tile < tiles_of(pair.n); tile += gridDim.x) {
    const PairTotals total = tree(share_of_tile(pair, tile, static_cast<int>(threadIdx.x)));
    if (threadIdx.x == 0) tiles[tile] = total;
  }
}

__global__ void __launch_bounds__(kThreads) sum_of_tiles(const PairTotals* tiles, int64_t count, PairTotals* out) {
  const PairTotals total = tree(share_of_tiles(tiles, count, static_cast<int>(threadIdx.x)));
  if (threadIdx.x == 0) *out = total;
}

using SumTiles = void (*)(Pair, PairTotals*);

SumTiles kernel_for(const Pair& pair) {
  if (pair.reference_type != pair.candidate_type) return sum_tiles<kMixed>;
  switch (pair.reference_type) {
    case Element::fp64:
      return sum_tiles<static_cast<int>(Element::fp64)>;
    case Element::fp32:
      return sum_tiles<static_cast<int>(Element::fp32)>;
    case Element::fp16:
      return sum_tiles<static_cast<int>(Element::fp16)>;
    case Element::bf16:
      return sum_tiles<static_cast<int>(Element::bf16)>;
    default:
      return sum_tiles<kMixed>;
  }
}

}  // namespace

std::string architectures() { return PARITY_CUDA_ARCHITECTURES; }

std::vector<Device> devices(std::string& why) {
  int count = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess) {
    why = std::string("none: ") + cudaGetErrorString(status);
    return {};
  }
  std::vector<Device> found;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp about{};
    check(cudaGetDeviceProperties(&about, i), "asking for a device's name");
    found.push_back({about.name, std::to_string(about.major) + "." + std::to_string(about.minor),
                     static_cast<int64_t>(about.totalGlobalMem)});
  }
  if (found.empty()) why = "none: the driver knows no device";
  return found;
}

PairTotals pair_totals(const Pair& pair, int device, int blocks) {
  if (pair.n < 1) throw Error("CUDA kernels were given a pair without elements; check its shape before comparing");
  const OnDevice here(device);
  const int64_t count = tiles_of(pair.n);
  const SumTiles kernel = kernel_for(pair);
  if (blocks < 1) blocks = busy_blocks(reinterpret_cast<const void*>(kernel), kThreads);
  const DeviceArray<PairTotals> tiles(count), total(1);
  kernel<<<static_cast<unsigned>(std::min<int64_t>(blocks, count)), kThreads>>>(pair, tiles.get());
  check(cudaGetLastError(), "starting the sums");
  sum_of_tiles<<<1, kThreads>>>(tiles.get(), count, total.get());
  check(cudaGetLastError(), "starting the sum of the sums");
  PairTotals out;
  to_host(total.get(), 1, &out);
  return out;
}

}  // namespace parity::kernels::cuda
