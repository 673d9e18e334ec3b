#include "measure/blocks.hpp"

#include <ATen/Parallel.h>

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

template <class T>
Totals<T> measure_blocks(const at::Tensor& reference, const at::Tensor& candidate, DifferenceRanks* ranks) {
  const int64_t n = reference.numel(), chunks = (n + kThreadShare - 1) / kThreadShare;
  std::vector<Totals<T>> per_chunk(static_cast<size_t>(chunks));
  if (ranks) ranks->prepare(reference, candidate, chunks);
  at::parallel_for(0, chunks, 1, [&](int64_t first, int64_t last) {
    const auto scratch = std::make_unique_for_overwrite<Scratch<T>>();
    for (int64_t chunk = first; chunk < last; ++chunk)
      for (int64_t begin = chunk * kThreadShare, end = std::min(n, begin + kThreadShare); begin < end;
           begin += kBlock) {
        const auto block = measure_block(reference, candidate, begin, std::min(kBlock, end - begin), *scratch);
        per_chunk[static_cast<size_t>(chunk)].merge(block);
        if (ranks) ranks->see(chunk, scratch->abs_d.data(), block.finite);
      }
  });
  Totals<T> all;
  for (const auto& chunk : per_chunk) all.merge(chunk);
  return all;
}

void visit_differences(const at::Tensor& reference, const at::Tensor& candidate, bool wide,
                       const std::function<void(int64_t, const double*, int64_t)>& visit) {
  const int64_t blocks = (reference.numel() + kBlock - 1) / kBlock;
  const auto run = [&]<class T>(T) {
    at::parallel_for(0, kTasks, 1, [&](int64_t first, int64_t last) {
      const auto scratch = std::make_unique_for_overwrite<Scratch<T>>();
      for (int64_t task = first; task < last; ++task)
        for (int64_t b = blocks * task / kTasks; b < blocks * (task + 1) / kTasks; ++b) {
          const int64_t n = std::min(kBlock, reference.numel() - b * kBlock);
          const auto totals = measure_block(reference, candidate, b * kBlock, n, *scratch);
          visit(task, scratch->abs_d.data(), totals.finite);
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
