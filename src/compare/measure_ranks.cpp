#include "compare/measure_ranks.hpp"

#include <ATen/Parallel.h>

#include <bit>
#include <numeric>

#include "compare/measure_blocks.hpp"

namespace parity {
namespace {

constexpr int64_t kKeepAll = int64_t{1} << 18;    // 2 MiB of differences
constexpr int64_t kRuns = 8192, kRunLength = 16;  // the sample: whole cache lines, evenly spread
// Half width of the interval in standard deviations of a sample's quantile. Neighbours are alike, so wider than
// independent draws would need; about 1 % of all differences is kept. A percentile that lies outside costs another
// pass, never a digit.
constexpr double kWidth = 6;

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

/// The values of `drawn` in [low, high], if they are at most `most`.
std::vector<double> few_values(const std::vector<double>& drawn, double low, double high, size_t most) {
  std::vector<double> out;
  for (const double x : drawn) {
    if (!(x >= low && x <= high) || x == 0 || std::find(out.begin(), out.end(), x) != out.end()) continue;
    if (out.size() == most) return {};
    out.push_back(x);
  }
  return out;
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
    const double low = at_rank(drawn, q * m - width), high = at_rank(drawn, q * m + width);
    low_[k] = low > 0 ? std::nextafter(low, 0.) : 0;  // zeros need no keeping: below the first other value all are zero
    high_[k] = std::nextafter(high, std::numeric_limits<double>::infinity());
    ties_[k] = few_values(drawn, low, high, kMaxTies);
  }
}

void DifferenceRanks::see(int64_t chunk, const double* abs_d, int64_t n) {
  Caught& caught = chunks_[static_cast<size_t>(chunk)];
  if (keep_all_) {
    caught.inside[0].insert(caught.inside[0].end(), abs_d, abs_d + n);
    return;
  }
  kernels::BlockPlaces places;
  kernels::block_places(abs_d, n, low_, high_, places);
  int64_t above_first = 0, above_second = 0;
  for (size_t word = 0; word < places.inside.size(); ++word) {
    above_first += std::popcount(places.above_first[word]);
    above_second += std::popcount(places.above_second[word]);
    for (uint64_t left = places.inside[word]; left != 0; left &= left - 1) {
      const double x = abs_d[64 * word + static_cast<size_t>(std::countr_zero(left))];
      for (size_t k = 0; k < 2; ++k) {
        if (!(x > low_[k] && x < high_[k])) continue;
        const auto tie = std::find(ties_[k].begin(), ties_[k].end(), x);
        if (tie != ties_[k].end())
          ++caught.tied[k][static_cast<size_t>(tie - ties_[k].begin())];
        else
          caught.inside[k].push_back(x);
      }
    }
  }
  caught.not_above[0] += n - above_first;
  caught.not_above[1] += n - above_second;
}

std::optional<std::array<double, 2>> DifferenceRanks::kept_ranks(size_t which, int64_t rank, int64_t finite) const {
  int64_t not_above = 0, kept = 0;
  std::vector<double> inside;
  std::array<int64_t, kMaxTies> tied{};
  for (const Caught& c : chunks_) {
    not_above += c.not_above[which];
    inside.insert(inside.end(), c.inside[which].begin(), c.inside[which].end());
    for (size_t i = 0; i < kMaxTies; ++i) tied[i] += c.tied[which][i];
  }
  if (!keep_all_ && low_[which] == 0 && rank + 1 < not_above) return std::array{0., 0.};
  kept = static_cast<int64_t>(inside.size()) + std::accumulate(tied.begin(), tied.end(), int64_t{0});
  const int64_t next = std::min(rank + 1, finite - 1);
  if (rank < not_above || next >= not_above + kept) return std::nullopt;
  // With the ties taken out below the rank, what is left is an ordinary selection.
  const auto at = [&](int64_t place) {
    std::vector<std::pair<double, int64_t>> ties;
    for (size_t i = 0; i < ties_[which].size(); ++i) ties.emplace_back(ties_[which][i], tied[i]);
    std::sort(ties.begin(), ties.end());
    for (const auto& [value, count] : ties) {
      const auto below = std::count_if(inside.begin(), inside.end(), [v = value](double x) { return x < v; });
      if (place < below) break;
      if (place < below + count) return value;
      place -= count;
    }
    std::nth_element(inside.begin(), inside.begin() + place, inside.end());
    return inside[static_cast<size_t>(place)];
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
