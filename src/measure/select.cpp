// Exact percentiles of |d| without keeping all of |d|: a histogram over the leading bits of the doubles narrows each
// rank down to values that fit in memory. (Doubles >= 0 are ordered like their bits.)
#include <bit>

#include "measure/blocks.hpp"

namespace parity {
namespace {

constexpr int64_t kKeep = int64_t{1} << 20;  // so many differences are simply kept: 8 MiB
constexpr int kDigit = 16;                   // bits of a histogram's index

struct DifferenceSource {
  const at::Tensor &reference, &candidate;
  bool wide;
  void visit(const std::function<void(int64_t, const double*, int64_t)>& f) const {
    visit_differences(reference, candidate, wide, f);
  }
};

/// All differences whose leading `bits` bits are `prefix`.
std::vector<double> collect(const DifferenceSource& source, int bits, uint64_t prefix) {
  std::array<std::vector<double>, kTasks> parts;
  source.visit([&](int64_t task, const double* abs_d, int64_t n) {
    auto& part = parts[static_cast<size_t>(task)];
    for (int64_t i = 0; i < n; ++i)
      if (bits == 0 || std::bit_cast<uint64_t>(abs_d[i]) >> (64 - bits) == prefix) part.push_back(abs_d[i]);
  });
  std::vector<double> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// How many differences with the given leading bits have each value of the next kDigit bits.
std::vector<int64_t> histogram(const DifferenceSource& source, int bits, uint64_t prefix) {
  std::vector<int64_t> counts(size_t{1} << kDigit);
  std::array<std::vector<int64_t>, kTasks> parts;
  source.visit([&](int64_t task, const double* abs_d, int64_t n) {
    auto& part = parts[static_cast<size_t>(task)];
    if (part.empty()) part.resize(counts.size());
    for (int64_t i = 0; i < n; ++i) {
      const auto value = std::bit_cast<uint64_t>(abs_d[i]);
      if (bits == 0 || value >> (64 - bits) == prefix) ++part[(value << bits) >> (64 - kDigit)];
    }
  });
  for (const auto& part : parts)
    for (size_t i = 0; i < part.size(); ++i) counts[i] += part[i];
  return counts;
}

/// The difference of rank `rank` (0 = the smallest).
double select(const DifferenceSource& source, int64_t rank, int64_t total) {
  uint64_t prefix = 0;
  int bits = 0;
  for (int64_t candidates = total; bits < 64 && candidates > kKeep; bits += kDigit) {
    const auto counts = histogram(source, bits, prefix);
    size_t digit = 0;
    for (; rank >= counts[digit]; ++digit) rank -= counts[digit];
    prefix = prefix << kDigit | digit;
    candidates = counts[digit];
  }
  if (bits == 64) return std::bit_cast<double>(prefix);
  auto values = collect(source, bits, prefix);
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return values[static_cast<size_t>(rank)];
}

}  // namespace

std::array<double, 2> select_ranks(const at::Tensor& reference, const at::Tensor& candidate, bool wide, int64_t rank,
                                   int64_t finite) {
  const DifferenceSource source{reference, candidate, wide};
  const double value = select(source, rank, finite);
  return {value, rank + 1 < finite ? select(source, rank + 1, finite) : value};
}

}  // namespace parity
