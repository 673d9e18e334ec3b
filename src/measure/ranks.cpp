#include "measure/ranks.hpp"

#include <ATen/Parallel.h>

#include "measure/blocks.hpp"

namespace parity {
namespace {

constexpr int64_t kKeepAll = int64_t{1} << 18;    // 2 MiB of differences
constexpr int64_t kRuns = 8192, kRunLength = 16;  // the sample: whole cache lines, evenly spread
// Half width of the interval in standard deviations of a sample's quantile. Neighbours are alike, so wider than
// independent draws would need; about 1 % of all differences is kept. A percentile that lies outside costs another
// pass, never a digit.
constexpr double kWidth = 5;

std::vector<double> sample(const at::Tensor& reference, const at::Tensor& candidate) {
  std::vector<double> out;
  out.reserve(kRuns * kRunLength);
  std::array<double, kRunLength> r, c;
  const int64_t n = reference.numel();
  for (int64_t run = 0; run < kRuns; ++run) {
    const auto begin =
        static_cast<int64_t>(static_cast<double>(n - kRunLength) * static_cast<double>(run) / (kRuns - 1));
    load(reference, begin, kRunLength, r.data());
    load(candidate, begin, kRunLength, c.data());
    for (size_t i = 0; i < kRunLength; ++i)
      if (const double d = std::abs(c[i] - r[i]); std::isfinite(d)) out.push_back(d);
  }
  return out;
}

double at_rank(std::vector<double>& values, double rank) {
  const auto place = static_cast<int64_t>(std::clamp(rank, 0., static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<size_t>(place)];
}

}  // namespace

void DifferenceRanks::prepare(const at::Tensor& reference, const at::Tensor& candidate, int64_t chunks) {
  reference_ = reference;
  candidate_ = candidate;
  chunks_.assign(static_cast<size_t>(chunks), {});
  keep_all_ = reference.numel() <= kKeepAll;
  if (keep_all_) return;
  std::vector<double> drawn = sample(reference, candidate);
  if (drawn.empty()) drawn.push_back(0);  // nothing finite where it looked: the interval will be wrong, the result not
  const auto m = static_cast<double>(drawn.size());
  for (size_t k = 0; k < kQuantiles.size(); ++k) {
    const double q = kQuantiles[k], width = kWidth * std::sqrt(m * q * (1 - q));
    const double low = at_rank(drawn, q * m - width), high = at_rank(drawn, q * m + width),
                 middle = at_rank(drawn, q * m);
    intervals_.low[k] =
        low > 0 ? std::nextafter(low, 0.) : 0;  // zeros need no keeping: below the first other value all are zero
    intervals_.high[k] = std::nextafter(high, std::numeric_limits<double>::infinity());
    const bool is_tie = middle > 0 && std::count(drawn.begin(), drawn.end(), middle) > 2;
    intervals_.tie[k] = is_tie ? middle : std::numeric_limits<double>::quiet_NaN();
  }
}

void DifferenceRanks::see(int64_t chunk, const double* abs_d, int64_t n) {
  Caught& caught = chunks_[static_cast<size_t>(chunk)];
  if (keep_all_) {
    caught.inside[0].insert(caught.inside[0].end(), abs_d, abs_d + n);
    return;
  }
  std::array<double, kBlock> kept;
  const auto found = kernels::block_find(abs_d, n, intervals_, kept.data());
  for (size_t k = 0; k < 2; ++k) {
    caught.not_above[k] += n - found.above[k];
    caught.tied[k] += found.tied[k];
    for (size_t i = 0; i < static_cast<size_t>(found.inside); ++i)
      if (kept[i] > intervals_.low[k] && kept[i] < intervals_.high[k] && kept[i] != intervals_.tie[k])
        caught.inside[k].push_back(kept[i]);
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
  if (!keep_all_ && intervals_.low[which] == 0 && next < not_above) return std::array{0., 0.};
  if (rank < not_above || next >= not_above + tied + static_cast<int64_t>(inside.size())) return std::nullopt;
  // Those below the tie come first, then the ties, then those above it: each half is an ordinary selection.
  const double tie = intervals_.tie[which];
  const auto upper =
      tied == 0 ? inside.begin() : std::partition(inside.begin(), inside.end(), [&](double x) { return x < tie; });
  const int64_t below = upper - inside.begin();
  const auto at = [&](int64_t place) {
    if (place >= below && place < below + tied) return tie;
    const auto begin = place < below ? inside.begin() : upper, end = place < below ? upper : inside.end();
    const auto wanted = begin + (place < below ? place : place - below - tied);
    std::nth_element(begin, wanted, end);
    return *wanted;
  };
  return std::array{at(rank - not_above), at(next - not_above)};
}

double DifferenceRanks::percentile(size_t which, int64_t finite) const {
  const double place = kQuantiles[which] * static_cast<double>(finite - 1), t = place - std::floor(place);
  const auto rank = static_cast<int64_t>(place);
  auto both = kept_ranks(keep_all_ ? 0 : which, rank, finite);
  if (!both) both = select_ranks(reference_, candidate_, wide_, rank, finite);
  const auto [a, b] = *both;
  return t < .5 ? a + (b - a) * t : b - (b - a) * (1 - t);  // numpy's 'linear' method, its rounding included
}

std::array<double, 2> DifferenceRanks::percentiles(int64_t finite) const {
  std::array<double, 2> out{};
  at::parallel_for(0, 2, 1, [&](int64_t first, int64_t last) {
    for (int64_t k = first; k < last; ++k) out[static_cast<size_t>(k)] = percentile(static_cast<size_t>(k), finite);
  });
  return out;
}

}  // namespace parity
