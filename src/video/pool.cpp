// Percentiles over a whole clip.
#include <algorithm>
#include <bit>
#include <cmath>

#include "video/measure.hpp"

namespace parity {

// The upper bits of a float >= 0: 8 of exponent and 12 of mantissa; order is that of the numbers.
constexpr int kDropped = 11;

size_t DifferencePool::bin_of(float magnitude) { return std::bit_cast<uint32_t>(magnitude) >> kDropped; }

double DifferencePool::bin_value(size_t bin) {  // the middle
  if (bin == 0) return 0;
  return std::bit_cast<float>((static_cast<uint32_t>(bin) << kDropped) | (1U << (kDropped - 1)));
}

void DifferencePool::add(const Differences& d) {
  unit_ = d.unit;
  if (counts_.size() < d.histogram.size()) counts_.resize(d.histogram.size());
  for (size_t k = 0; k < d.histogram.size(); ++k) counts_[k] += d.histogram[k], total_ += d.histogram[k];
  total_ += d.magnitudes.size();
  if (!binned_ && floats_.size() + d.magnitudes.size() > kExactFloats) {
    binned_ = true;
    bins_.resize(size_t{1} << (31 - kDropped));
    for (const float v : floats_) bin(v);
    floats_ = {};
  }
  if (binned_)
    for (const float v : d.magnitudes) bin(v);
  else
    floats_.insert(floats_.end(), d.magnitudes.begin(), d.magnitudes.end());
  sorted_ = false;
}

double DifferencePool::ranked(uint64_t rank) const {
  if (!floats_.empty()) return floats_[rank];
  const auto& counts = binned_ ? bins_ : counts_;
  uint64_t seen = 0;
  for (size_t k = 0; k < counts.size(); ++k)
    if ((seen += counts[k]) > rank) return binned_ ? bin_value(k) : static_cast<double>(k);
  return 0;
}

std::optional<double> DifferencePool::percentile(double share) const {
  if (total_ == 0) return std::nullopt;
  if (!sorted_ && !floats_.empty()) {
    std::sort(floats_.begin(), floats_.end());
    sorted_ = true;
  }
  const double position = static_cast<double>(total_ - 1) * share;
  const auto rank = static_cast<uint64_t>(position);
  const double low = ranked(rank), high = ranked(std::min(rank + 1, total_ - 1));
  return (low + (high - low) * (position - static_cast<double>(rank))) * unit_;
}

HistogramOfDifferences DifferencePool::histogram(size_t most_bins, double largest) const {
  HistogramOfDifferences out;
  const double units = largest / unit_;
  // Bins of whole integers, so that none holds more of them than its neighbour.
  const double width = counts_.empty() ? std::max(units / static_cast<double>(most_bins), 1e-12)
                                       : std::max(std::ceil((units + 1) / static_cast<double>(most_bins)), 1.0);
  out.counts.resize(counts_.empty() ? most_bins : static_cast<size_t>(std::floor(units / width + 1e-9)) + 1);
  out.top = static_cast<double>(out.counts.size()) * width * unit_;
  const auto put = [&](double value, double count) {
    out.counts[std::min(static_cast<size_t>(value / width), out.counts.size() - 1)] += count;
  };
  for (const float v : floats_) put(static_cast<double>(v), 1);
  const auto& counts = binned_ ? bins_ : counts_;
  for (size_t k = 0; k < counts.size(); ++k)
    if (counts[k] > 0) put(binned_ ? bin_value(k) : static_cast<double>(k), static_cast<double>(counts[k]));
  return out;
}

}  // namespace parity
