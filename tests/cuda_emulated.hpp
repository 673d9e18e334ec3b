// The CUDA kernels' code run by the CPU, block by block and thread by thread, in an order that the test chooses.
#pragma once
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>

#include "cuda_pairs.hpp"
#include "kernels/cuda/order.hpp"
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
  for (size_t half = cuda::kThreads / 2; half > 0; half /= 2)
    for (size_t thread = half; thread-- > 0;) cuda::merge(shares[thread], shares[thread + half]);
  return shares[0];
}

/// `each(thread)` of every thread of a block, merged.
template <class Each>
cuda::PairTotals block_of(Each&& each) {
  std::vector<cuda::PairTotals> shares;
  for (int thread = 0; thread < cuda::kThreads; ++thread) shares.push_back(each(thread));
  return tree(std::move(shares));
}

/// What lies in the bands, in the order that it was met.
struct KeepInLists {
  static constexpr bool kNothing = false;
  std::vector<double> lists[cuda::kBands];
  void operator()(int band, double d) { lists[band].push_back(d); }
};

/// `blocks` take tiles in turn, as the grid does; `seed` decides who is when.
template <class Keep>
cuda::PairTotals emulated_totals(const cuda::Pair& pair, int64_t blocks, uint64_t seed, const cuda::Bands& bands,
                                 Keep& keep) {
  const int64_t count = cuda::tiles_of(pair.n);
  std::vector<cuda::PairTotals> tiles(static_cast<size_t>(count)), groups;
  std::vector<int64_t> order(static_cast<size_t>(blocks));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
  cuda::with_types(pair, [&](auto types) {
    for (const int64_t block : order)
      for (int64_t tile = block; tile < count; tile += blocks)
        tiles[static_cast<size_t>(tile)] =
            block_of([&](int thread) { return cuda::share_of_tile<decltype(types)>(pair, tile, thread, bands, keep); });
  });
  for (int64_t group = 0; group < cuda::groups_of(count); ++group)
    groups.push_back(block_of([&](int thread) { return cuda::share_of_group(tiles.data(), count, group, thread); }));
  return block_of(
      [&](int thread) { return cuda::share_of_groups(groups.data(), static_cast<int64_t>(groups.size()), thread); });
}
inline cuda::PairTotals emulated_totals(const cuda::Pair& pair, int64_t blocks, uint64_t seed) {
  cuda::KeepNothing keep;
  return emulated_totals(pair, blocks, seed, cuda::Bands(), keep);
}

/// The finite |d| of a pair.
inline std::vector<double> distances_of(const cuda::Pair& pair) {
  std::vector<double> out;
  for (int64_t i = 0; i < pair.n; ++i)
    if (const double d = cuda::distance_at(pair, i); std::isfinite(d)) out.push_back(d);
  return out;
}

inline std::vector<int64_t> emulated_counts(const std::vector<double>& values, const cuda::Interval& interval) {
  std::vector<int64_t> counts(interval.bins);
  for (const double d : values)
    if (const int bin = cuda::bin_of(d, interval); bin >= 0) ++counts[static_cast<size_t>(bin)];
  return counts;
}

/// A search for ranks among differences as a device does it, `few` gathered at most.
inline cuda::RankSearch emulated_search(std::vector<double> values, const cuda::Interval& all, const cuda::Tie& tie,
                                        int64_t few) {
  const auto total = static_cast<int64_t>(values.size()) + tie.times;
  const auto shared = std::make_shared<std::vector<double>>(std::move(values));
  return {all,
          tie,
          total,
          few,
          [shared](const cuda::Interval& interval) { return emulated_counts(*shared, interval); },
          [shared, few](const cuda::Interval& interval, int64_t count) {
            if (count > few) throw std::logic_error("more are gathered than may be");
            std::vector<double> out;
            for (const double d : *shared)
              if (cuda::bin_of(d, interval) >= 0) out.push_back(d);
            if (static_cast<int64_t>(out.size()) != count)
              throw std::logic_error("other differences than were counted");
            return out;
          }};
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
                                t.not_finite,
                                t.special_reference,
                                t.special_candidate,
                                t.special_mismatch,
                                t.zeros_reference,
                                t.any_candidate != 0,
                                t.bits_known ? t.equal : 0,
                                t.bits_known ? static_cast<int64_t>(t.max_ulp) : 0,
                                t.bits_known,
                                t.differs_reference != 0,
                                t.differs_candidate != 0};
  };
  return doubles(a) == doubles(b) && counts(a) == counts(b);
}

}  // namespace parity::test
