#include "measure/blocks.hpp"

#include <ATen/Parallel.h>

#include <atomic>

#include "measure/ranks.hpp"

namespace parity {
template <class T>
void Totals<T>::merge(const Totals& later) {
  if (later.worst_block >= 0 && (worst_block < 0 || later.max_d > max_d)) {
    max_d = later.max_d;
    worst_block = later.worst_block;
  }
  for (auto [mine, other] : {std::pair{&sum_d, later.sum_d},
                             {&sum_dd, later.sum_dd},
                             {&sum_r, later.sum_r},
                             {&sum_rr, later.sum_rr},
                             {&sum_cc, later.sum_cc},
                             {&sum_rc, later.sum_rc},
                             {&sum_dr, later.sum_dr}})
    *mine += other;
  for (auto [mine, other] : {std::pair{&finite, later.finite},
                             {&special_reference, later.special_reference},
                             {&special_candidate, later.special_candidate},
                             {&special_mismatch, later.special_mismatch},
                             {&zeros, later.zeros},
                             {&equal, later.equal}})
    *mine += other;
  max_ulp = std::max(max_ulp, later.max_ulp);
  bits_known = bits_known && later.bits_known;
}

namespace {

template <class T>
Totals<T> measure_chunk(const at::Tensor& reference, const at::Tensor& candidate, int64_t chunk,
                        BlockScratch<T>& scratch, DifferenceRanks* ranks) {
  Totals<T> totals;
  int64_t finite = 0;
  const auto show = [&] {
    if (ranks) ranks->see(chunk, scratch.kept.data(), scratch.kept_count, finite);
    scratch.kept_count = finite = 0;
  };
  const int64_t end = std::min(reference.numel(), (chunk + 1) * kThreadShare);
  for (int64_t begin = chunk * kThreadShare; begin < end; begin += kBlock) {
    if (scratch.kept_count > kKept) show();
    const auto block = measure_block(reference, candidate, begin, std::min(kBlock, end - begin), scratch);
    totals.merge(block);
    finite += block.finite;
  }
  show();
  return totals;
}

}  // namespace

template <class T>
Totals<T> measure_blocks(const at::Tensor& reference, const at::Tensor& candidate, DifferenceRanks* ranks) {
  const int64_t chunks = (reference.numel() + kThreadShare - 1) / kThreadShare;
  std::vector<Totals<T>> per_chunk(static_cast<size_t>(chunks));
  if (ranks) ranks->prepare(reference, candidate, chunks);
  // Whoever is free takes the next: shares fixed beforehand wait for the thread whose core has other work.
  std::atomic<int64_t> next = 0;
  at::parallel_for(0, std::min<int64_t>(chunks, at::get_num_threads()), 1, [&](int64_t, int64_t) {
    const auto scratch = std::make_unique_for_overwrite<BlockScratch<T>>();
    if (ranks) scratch->above = ranks->above();
    for (int64_t chunk; (chunk = next++) < chunks;)
      per_chunk[static_cast<size_t>(chunk)] = measure_chunk(reference, candidate, chunk, *scratch, ranks);
  });
  Totals<T> all;
  for (const auto& chunk : per_chunk) all.merge(chunk);
  return all;
}

void visit_differences(const at::Tensor& reference, const at::Tensor& candidate, bool wide,
                       const std::function<void(int64_t, const double*, int64_t)>& visit) {
  const int64_t blocks = (reference.numel() + kBlock - 1) / kBlock, tasks = std::min(kTasks, blocks);
  const auto run = [&]<class T>(T) {
    at::parallel_for(0, tasks, 1, [&](int64_t first, int64_t last) {
      const auto scratch = std::make_unique_for_overwrite<BlockScratch<T>>();
      scratch->above = -1;
      for (int64_t task = first; task < last; ++task)
        for (int64_t b = blocks * task / tasks; b < blocks * (task + 1) / tasks; ++b) {
          scratch->kept_count = 0;
          measure_block(reference, candidate, b * kBlock, std::min(kBlock, reference.numel() - b * kBlock), *scratch);
          visit(task, scratch->kept.data(), scratch->kept_count);
        }
    });
  };
  wide ? run(0.0L) : run(0.0);
}

template struct Totals<double>;
template struct Totals<long double>;
template Totals<double> measure_blocks(const at::Tensor&, const at::Tensor&, DifferenceRanks*);
template Totals<long double> measure_blocks(const at::Tensor&, const at::Tensor&, DifferenceRanks*);

}  // namespace parity
