// A pair's measurement from start to end: a sample, bands around its quantiles, the pass, and ranks from what it kept.
#include "kernels/cuda/device_memory.cuh"
#include "kernels/cuda/device_ranks.cuh"
#include "kernels/cuda/device_sums.cuh"
#include "kernels/cuda/rank_search.hpp"

namespace parity::kernels::cuda {
namespace {

constexpr int64_t kFew = 4096;  // so many are gathered and sorted by the host: 0.1 ms

/// About twice what lies in a band (0.6 % at the 95th percentile).
int64_t capacity_for(int64_t n) { return n / 64 + (int64_t{1} << 16); }

/// What the pass leaves in the device's memory.
struct Results {
  PairResult pair;
  Bands bands;
  Count kept[kBands];
  unsigned counts[kBands][kBins];  // of what was kept
};

RankSearch search_of(const Differences& differences, const Interval& all, const Tie& tie, int64_t total) {
  return {all,
          tie,
          total,
          kFew,
          [=](const Interval& interval) { return counts_in(interval, differences); },
          [=](const Interval& interval, int64_t count) { return gathered(interval, differences, count); }};
}

}  // namespace

struct Measurement::State {
  Pair pair;
  int device;
  std::unique_ptr<DeviceArray<double>> sorted;  // all differences of a small pair
  std::unique_ptr<DeviceArray<double>> lists;   // what lies in the bands of a large one
  std::unique_ptr<Results> results = std::make_unique<Results>();
  std::vector<RankSearch> in_bands, in_all;  // once needed
  int64_t by_passes = 0;

  State(const Pair& p, int on) : pair(p), device(on) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {  // memory goes back on the device that it is of
    int before = 0;
    if (cudaGetDevice(&before) != cudaSuccess || cudaSetDevice(device) != cudaSuccess) return;
    sorted.reset();
    lists.reset();
    cudaSetDevice(before);
  }

  void measure(const std::vector<double>& quantiles, int blocks) {
    const DeviceArray<Results> there(1);
    set_to_zero(there.get(), 1);
    if (quantiles.empty() || pair.n <= kSample) {
      if (!quantiles.empty()) {
        sorted = std::make_unique<DeviceArray<double>>(pair.n);
        start_sorting(pair, sorted->get());
      }
      start_sums(pair, nullptr, {}, blocks, &there.get()->pair);
      return to_host(&there.get()->pair, 1, &results->pair);
    }
    start_bands(pair, quantiles, &there.get()->bands);
    const Kept kept = room_for_bands(there.get()->kept);
    start_sums(pair, &there.get()->bands, kept, blocks, &there.get()->pair);
    start_counting(&there.get()->bands, kept, there.get()->counts[0]);
    to_host(there.get(), 1, results.get());
    for (int b = 0; b < kBands; ++b) in_bands.push_back(search_of_band(b, kept));
  }

  Kept room_for_bands(Count* counts) {
    Kept kept;
    kept.counts = counts;
    kept.capacity = capacity_for(pair.n);
    lists = std::make_unique<DeviceArray<double>>(kBands * kept.capacity);
    for (int b = 0; b < kBands; ++b) kept.values[b] = lists->get() + b * kept.capacity;
    return kept;
  }

  RankSearch search_of_band(int b, const Kept& kept) const {
    const Interval interval = interval_of(results->bands.band[b]);
    const Tie tie{results->bands.band[b].tie, results->pair.totals.tied[b]};
    const auto count = static_cast<int64_t>(results->kept[b]);
    RankSearch search = search_of({pair, kept.values[b], count}, interval, tie, count + tie.times);
    search.already_counted({results->counts[b], results->counts[b] + interval.bins});
    return search;
  }

  double rank(int64_t wanted) {
    if (sorted) {
      double value = 0;
      to_host(sorted->get() + wanted, 1, &value);
      return value;
    }
    for (size_t b = 0; b < in_bands.size(); ++b) {
      const auto kept = static_cast<int64_t>(results->kept[b]);
      const int64_t place = wanted - results->pair.totals.below[b];
      if (kept <= capacity_for(pair.n) && place >= 0 && place < kept + results->pair.totals.tied[b])
        return in_bands[b].at(place);
    }
    ++by_passes;
    if (in_all.empty()) in_all.push_back(search_of({pair, nullptr, pair.n}, Interval(), {}, results->pair.finite));
    return in_all[0].at(wanted);
  }
};

Measurement::Measurement(const Pair& pair, int device, const std::vector<double>& quantiles, int blocks) {
  if (pair.n < 1) throw Error("CUDA kernels were given a pair without elements; check its shape before comparing");
  if (!quantiles.empty() && quantiles.size() != kBands)
    throw Error("CUDA kernels keep track of " + std::to_string(kBands) + " quantiles or of none");
  const OnDevice here(device);
  state_ = std::make_unique<State>(pair, device);
  state_->measure(quantiles, blocks);
}

Measurement::~Measurement() = default;

const PairResult& Measurement::result() const { return state_->results->pair; }

int64_t Measurement::ranks_by_passes() const { return state_->by_passes; }

std::vector<double> Measurement::ranks(const std::vector<int64_t>& wanted) const {
  const OnDevice here(state_->device);
  std::vector<double> out;
  for (const int64_t rank : wanted) {
    if (rank < 0 || rank >= result().finite)
      throw Error("CUDA kernels were asked for a rank that the pair does not have");
    out.push_back(state_->rank(rank));
  }
  return out;
}

}  // namespace parity::kernels::cuda
