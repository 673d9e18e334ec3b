// The CUDA kernels' code run by the CPU, block by block and thread by thread, in an order that the test chooses.
#pragma once
#include <numeric>
#include <random>

#include "cuda_pairs.hpp"
#include "kernels/cuda/rank_search.hpp"

namespace parity::test {

namespace cuda = kernels::cuda;

inline cuda::Pair pair_of(const Array& r, const Array& c) {
  const auto element = [](const Array& a) {
    size_t i = 0;
    while (stored_types()[i].name != a.type.name) ++i;
    return static_cast<cuda::Element>(i);
  };
  return {r.memory.data(), c.memory.data(), element(r), element(c), r.size()};
}

/// What `tree` of pair_totals.cu does: a barrier lies between the steps, within one the threads go in any order.
inline cuda::PairTotals tree(std::vector<cuda::PairTotals> shares) {
  for (int half = cuda::kThreads / 2; half > 0; half /= 2)
    for (int thread = half - 1; thread >= 0; --thread) cuda::merge_step(shares.data(), half, thread);
  return shares[0];
}

/// `blocks` take tiles in turn, as the grid does; `seed` decides who is when.
inline cuda::PairTotals emulated_totals(const cuda::Pair& pair, int64_t blocks, uint64_t seed) {
  const int64_t count = cuda::tiles_of(pair.n);
  std::vector<cuda::PairTotals> tiles(static_cast<size_t>(count)), shares(cuda::kThreads);
  std::vector<int64_t> order(static_cast<size_t>(blocks));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
  for (const int64_t block : order)
    for (int64_t tile = block; tile < count; tile += blocks) {
      for (int thread = 0; thread < cuda::kThreads; ++thread)
        shares[static_cast<size_t>(thread)] = cuda::share_of_tile(pair, tile, thread);
      tiles[static_cast<size_t>(tile)] = tree(shares);
    }
  for (int thread = 0; thread < cuda::kThreads; ++thread)
    shares[static_cast<size_t>(thread)] = cuda::share_of_tiles(tiles.data(), count, thread);
  return tree(shares);
}

inline std::vector<int64_t> emulated_counts(const cuda::Pair& pair, const cuda::Prefix& prefix) {
  std::vector<int64_t> counts(cuda::kBins);
  for (int64_t i = pair.n; i-- > 0;)
    if (const double d = cuda::distance_at(pair, i); cuda::begins_with(d, prefix))
      ++counts[static_cast<size_t>(cuda::next_digit(d, prefix))];
  return counts;
}

inline std::vector<double> emulated_gather(const cuda::Pair& pair, const cuda::Prefix& prefix) {
  std::vector<double> out;
  for (int64_t i = 0; i < pair.n; ++i)
    if (const double d = cuda::distance_at(pair, i); cuda::begins_with(d, prefix)) out.push_back(d);
  std::sort(out.begin(), out.end());
  return out;
}

/// Bit by bit.
inline bool same_totals(const cuda::PairTotals& a, const cuda::PairTotals& b) {
  const auto doubles = [](const cuda::PairTotals& t) {
    std::vector<uint64_t> out;
    for (const double x : {t.max_d, t.sum_d, t.sum_dd, t.sum_r, t.sum_c, t.sum_rr, t.sum_cc, t.sum_rc, t.sum_dr})
      out.push_back(cuda::bits_of(x));
    return out;
  };
  const auto counts = [](const cuda::PairTotals& t) {
    return std::vector<int64_t>{t.worst,
                                t.finite,
                                t.special_reference,
                                t.special_candidate,
                                t.special_mismatch,
                                t.zeros_reference,
                                t.zeros_candidate,
                                t.bits_known ? t.equal : 0,
                                t.bits_known ? static_cast<int64_t>(t.max_ulp) : 0,
                                t.bits_known,
                                t.varies_reference,
                                t.varies_candidate};
  };
  return doubles(a) == doubles(b) && counts(a) == counts(b);
}

}  // namespace parity::test
