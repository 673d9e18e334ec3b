#include "measure/ranks.hpp"

#include <ATen/Parallel.h>

#include "measure/blocks.hpp"

namespace parity {
namespace {

constexpr int64_t kKeepAll = int64_t{1} << 18;  // 2 MiB of differences
// The sample: whole cache lines, evenly spread, a 64th of the elements or as many as narrow the intervals to 1 %.
constexpr int64_t kMostRuns = 8192, kRunLength = 16, kOneOf = 64;
constexpr int64_t kAhead = 16;  // runs: each lies in a page of its own, and its latency is all that it takes
// Half width of the interval in standard deviations of a sample's quantile. Neighbours are alike, so wider than
// independent draws would need; about 1 % of all differences is kept. A percentile that lies outside costs another
// pass, never a digit.
constexpr double kWidth = 5;
constexpr int64_t kSampleOfAll = 512, kWorthSampling = 4 * kSampleOfAll;  // of a tensor that is kept whole
constexpr int64_t kWorthNarrowing = 1 << 15;                              // below it a sample's cost is a selection's
constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNone = std::numeric_limits<double>::quiet_NaN();

constexpr int64_t kWhole = kKeptSpill;  // the kernels work on so many at a time, on a rest one by one
using BlockBuffer = std::array<double, static_cast<size_t>(kBlock + kernels::kBlockSpill)>;

std::vector<double> sample(const at::Tensor& reference, const at::Tensor& candidate) {
  const int64_t n = reference.numel(), runs = std::min(kMostRuns, n / (kOneOf * kRunLength));
  std::vector<double> out(static_cast<size_t>(runs * kRunLength));
  const auto begin_of = [&](int64_t run) {
    return static_cast<int64_t>(static_cast<double>(n - kRunLength) * static_cast<double>(run) /
                                static_cast<double>(runs - 1));
  };
  at::parallel_for(0, runs, kMostRuns / 8, [&](int64_t first, int64_t last) {
    std::array<double, kRunLength> r, c;
    for (int64_t run = first; run < last; ++run) {
      const int64_t begin = begin_of(run), ahead = begin_of(std::min(run + kAhead, last - 1));
      for (const at::Tensor* side : {&reference, &candidate}) __builtin_prefetch(at_element(*side, ahead));
      load(reference, begin, kRunLength, r.data());
      load(candidate, begin, kRunLength, c.data());
      for (size_t i = 0; i < kRunLength; ++i) out[static_cast<size_t>(run * kRunLength) + i] = std::abs(c[i] - r[i]);
    }
  });
  std::erase_if(out, [](double d) { return !std::isfinite(d); });
  return out;
}

/// Ranks of one set of values, asked for in ascending order: each looks only above the last.
class AscendingRanks {
 public:
  explicit AscendingRanks(std::vector<double>& values) : values_(values) {}
  double at(double rank) {
    const auto place = static_cast<int64_t>(std::clamp(rank, 0., static_cast<double>(values_.size() - 1)));
    std::nth_element(values_.begin() + begin_, values_.begin() + place, values_.end());
    begin_ = place;
    return values_[static_cast<size_t>(place)];
  }

 private:
  std::vector<double>& values_;
  int64_t begin_ = 0;
};

/// Deviation of the rank that a quantile has in a sample of m.
double rank_deviation(double quantile, double m) { return std::sqrt(m * quantile * (1 - quantile)); }

std::vector<double> every(std::span<const double> values, size_t step) {
  std::vector<double> out;
  for (size_t i = step / 2; i < values.size(); i += step) out.push_back(values[i]);
  return out;
}

/// Copies to `narrowed` the values near a quantile, by a sample; returns how many are smaller than all of these.
int64_t narrow(std::span<const double> values, double quantile, std::vector<double>& narrowed) {
  std::vector<double> drawn = every(values, values.size() / static_cast<size_t>(kSampleOfAll));
  const auto m = static_cast<double>(drawn.size());
  const double width = kWidth * rank_deviation(quantile, m) + 1;
  AscendingRanks ranks(drawn);
  const double low = ranks.at(quantile * m - width), high = ranks.at(quantile * m + width);
  const kernels::BlockInterval interval{std::nextafter(low, -1.), std::nextafter(high, kInfinity), kNone};
  BlockBuffer inside;
  int64_t above = 0;
  for (size_t i = 0; i < values.size(); i += kBlock) {
    const auto n = std::min<int64_t>(kBlock, static_cast<int64_t>(values.size() - i));
    const auto found = kernels::block_between(values.data() + i, n, interval, inside.data());
    above += found.above;
    narrowed.insert(narrowed.end(), inside.data(), inside.data() + found.inside);
  }
  return static_cast<int64_t>(values.size()) - above;
}

}  // namespace

QuantilePlace::QuantilePlace(double quantile, int64_t n) {
  const double place = quantile * static_cast<double>(n - 1);
  rank = static_cast<int64_t>(place);
  fraction = place - std::floor(place);
}

double QuantilePlace::between(std::array<double, 2> neighbours) const {
  const auto [a, b] = neighbours;
  return fraction < .5 ? a + (b - a) * fraction : b - (b - a) * (1 - fraction);
}

std::array<double, 2> neighbouring_ranks(std::span<double> values, int64_t rank) {
  const auto size = static_cast<int64_t>(values.size());
  if (size >= kWorthNarrowing) {
    std::vector<double> narrowed;
    const int64_t below = narrow(values, static_cast<double>(rank) / static_cast<double>(size), narrowed);
    const auto last = std::min(rank + 1, size - 1), left = static_cast<int64_t>(narrowed.size());
    // Equal values do not get fewer: most of a bitwise equal pair's differences are the zero that is looked for.
    if (left <= size / 2 && rank >= below && last < below + left) return neighbouring_ranks(narrowed, rank - below);
  }
  const auto wanted = values.begin() + rank;
  std::nth_element(values.begin(), wanted, values.end());
  return {*wanted, wanted + 1 == values.end() ? *wanted : *std::min_element(wanted + 1, values.end())};
}

void DifferenceRanks::prepare(const at::Tensor& reference, const at::Tensor& candidate, int64_t chunks) {
  reference_ = reference;
  candidate_ = candidate;
  chunks_.assign(static_cast<size_t>(chunks), {});
  keep_all_ = reference.numel() <= kKeepAll;
  if (keep_all_) return;
  std::vector<double> drawn = sample(reference, candidate);
  if (drawn.empty()) drawn.push_back(0);  // nothing finite where it looked: the interval will be wrong, the result not
  const auto m = static_cast<double>(drawn.size());
  AscendingRanks ranks(drawn);
  for (size_t k = 0; k < kQuantiles.size(); ++k) {
    const double place = kQuantiles[k] * m, width = kWidth * rank_deviation(kQuantiles[k], m);
    const double low = ranks.at(place - width), middle = ranks.at(place), high = ranks.at(place + width);
    // Zeros need no keeping: below the first other value all are zero.
    intervals_[k] = {low > 0 ? std::nextafter(low, 0.) : 0, std::nextafter(high, kInfinity), kNone};
    if (middle > 0 && std::count(drawn.begin(), drawn.end(), middle) > 2) intervals_[k].tie = middle;
  }
}

void DifferenceRanks::see(int64_t chunk, double* abs_d, int64_t n, int64_t finite) {
  Caught& caught = chunks_[static_cast<size_t>(chunk)];
  if (keep_all_) {
    if (caught.all.empty()) caught.all.reserve(static_cast<size_t>(std::min(reference_.numel(), kThreadShare)));
    caught.all.insert(caught.all.end(), abs_d, abs_d + n);
    return;
  }
  std::fill_n(abs_d + n, kWhole, -1);  // in no interval
  std::array<double, static_cast<size_t>(kKept + kBlock + kWhole + kernels::kBlockSpill)> inside;
  for (size_t k = 0; k < kQuantiles.size(); ++k) {
    const auto found = kernels::block_between(abs_d, (n + kWhole - 1) / kWhole * kWhole, intervals_[k], inside.data());
    caught.not_above[k] += finite - found.above;
    caught.tied[k] += found.tied;
    caught.inside[k].insert(caught.inside[k].end(), inside.data(), inside.data() + found.inside);
  }
}

std::optional<std::array<double, 2>> DifferenceRanks::kept_ranks(size_t which, int64_t rank, int64_t finite) const {
  int64_t not_above = 0, tied = 0;
  std::vector<double> inside;
  for (const Caught& c : chunks_) {
    not_above += c.not_above[which];
    tied += c.tied[which];
    inside.insert(inside.end(), c.inside[which].begin(), c.inside[which].end());
  }
  const int64_t next = std::min(rank + 1, finite - 1);
  if (intervals_[which].low == 0 && next < not_above) return std::array{0., 0.};
  if (rank < not_above || next >= not_above + tied + static_cast<int64_t>(inside.size())) return std::nullopt;
  rank -= not_above;
  if (tied == 0) return neighbouring_ranks(inside, rank);
  // Those below the tie come first, then the ties, then those above it: each half is an ordinary selection.
  const double tie = intervals_[which].tie;
  const auto upper = std::partition(inside.begin(), inside.end(), [&](double x) { return x < tie; });
  const int64_t below = upper - inside.begin();
  const auto at = [&](int64_t place) {
    if (place < below) return neighbouring_ranks({inside.begin(), upper}, place)[0];
    return place < below + tied ? tie : neighbouring_ranks({upper, inside.end()}, place - below - tied)[0];
  };
  return std::array{at(rank), at(next - not_above)};
}

double DifferenceRanks::percentile(size_t which, int64_t finite) const {
  const QuantilePlace place(kQuantiles[which], finite);
  auto both = kept_ranks(which, place.rank, finite);
  if (!both) both = select_ranks(reference_, candidate_, wide_, place.rank, finite);
  return place.between(*both);
}

std::vector<double> DifferenceRanks::all_above(double low) const {
  std::vector<double> out;
  BlockBuffer found;
  for (const Caught& c : chunks_)
    for (size_t i = 0; i < c.all.size(); i += kBlock) {
      const auto n = std::min<int64_t>(kBlock, static_cast<int64_t>(c.all.size() - i));
      out.insert(out.end(), found.data(), found.data() + kernels::block_above(c.all.data() + i, n, low, found.data()));
    }
  return out;
}

std::array<double, 2> DifferenceRanks::percentiles_of_all(int64_t finite) const {
  const double first_place = kQuantiles[0] * static_cast<double>(finite - 1);
  double low = -1;  // differences are >= 0
  if (finite >= kWorthSampling) {
    std::vector<double> drawn;
    for (const Caught& c : chunks_) {
      const auto part = every(c.all, static_cast<size_t>(finite / kSampleOfAll));
      drawn.insert(drawn.end(), part.begin(), part.end());
    }
    const auto m = static_cast<double>(drawn.size());
    low = AscendingRanks(drawn).at(kQuantiles[0] * m - kWidth * rank_deviation(kQuantiles[0], m));
  }
  std::vector<double> top = all_above(low);
  if (static_cast<double>(finite) - first_place > static_cast<double>(top.size())) top = all_above(-1);
  std::array<double, 2> out{};
  for (size_t k = 0; k < out.size(); ++k) {
    const QuantilePlace place(kQuantiles[k], finite);
    const auto below = finite - static_cast<int64_t>(top.size());
    out[k] = place.between(neighbouring_ranks(top, place.rank - below));
  }
  return out;
}

std::array<double, 2> DifferenceRanks::percentiles(int64_t finite) const {
  if (keep_all_) return percentiles_of_all(finite);
  std::array<double, 2> out{};
  at::parallel_for(0, 2, 1, [&](int64_t first, int64_t last) {
    for (int64_t k = first; k < last; ++k) out[static_cast<size_t>(k)] = percentile(static_cast<size_t>(k), finite);
  });
  return out;
}

}  // namespace parity
