// The order of a pair's sums, whatever the device and its grid: elements lie in tiles, a tile's are dealt out to
// kThreads sums, and these are merged as a tree; so are the sums of kThreads tiles, which are a group's, and the
// groups'.
#pragma once
#include "kernels/cuda/tile_sums.hpp"

namespace parity::kernels::cuda {

constexpr int kMostEach = 256;
constexpr int64_t kManyTiles = 2048;  // keep a device busy: a few for each of its blocks

/// A thread's elements of a tile, for an array of n: the more, the less there is to merge.
PARITY_HOST_DEVICE constexpr int each_of(int64_t n) {
  const int64_t batches = n / (kManyTiles * kThreads * kBatch) + 1;
  return static_cast<int>(batches < kMostEach / kBatch ? batches * kBatch : kMostEach);
}
PARITY_HOST_DEVICE constexpr int64_t tile_of(int64_t n) { return int64_t{each_of(n)} * kThreads; }
PARITY_HOST_DEVICE constexpr int64_t tiles_of(int64_t n) { return (n + tile_of(n) - 1) / tile_of(n); }
PARITY_HOST_DEVICE constexpr int64_t groups_of(int64_t tiles) { return (tiles + kThreads - 1) / kThreads; }

/// The share of `thread` < kThreads in tile `tile`.
template <class Types, class Keep>
PARITY_HOST_DEVICE PairTotals share_of_tile(const Pair& pair, int64_t tile, int thread, const Bands& bands,
                                            Keep& keep) {
  TileSums<Types, Keep> sums(pair, tile * tile_of(pair.n) + thread, bands, keep);
  sums.add(each_of(pair.n));
  return sums.totals();
}

/// The share of `thread` < kThreads in the sums of `count` tiles: in a group's, and in all groups'.
PARITY_HOST_DEVICE inline PairTotals share_of_group(const PairTotals* tiles, int64_t count, int64_t group, int thread) {
  const int64_t at = group * kThreads + thread;
  return at < count ? tiles[at] : PairTotals();
}
PARITY_HOST_DEVICE inline PairTotals share_of_groups(const PairTotals* groups, int64_t count, int thread) {
  PairTotals t;
  for (int64_t i = thread; i < count; i += kThreads) merge(t, groups[i]);
  return t;
}

}  // namespace parity::kernels::cuda
