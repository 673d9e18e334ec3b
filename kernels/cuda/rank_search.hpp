// Exact ranks among |d| by histograms over an interval of its bits: counts narrow a rank down until few differences are
// left, which are gathered. Who counts and gathers, a GPU or a loop, is the caller's business.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "kernels/cuda/interval.hpp"

namespace parity::kernels::cuda {

/// A value that stands `times` among the differences and that is neither counted nor gathered with them.
struct Tie {
  double value = -1;
  int64_t times = 0;
};

class RankSearch {
 public:
  /// How many differences lie in each bin.
  using Count = std::function<std::vector<int64_t>(const Interval&)>;
  /// All differences of an interval, `count` of them, in any order.
  using Gather = std::function<std::vector<double>(const Interval&, int64_t count)>;

  /// Among `total` differences of `all`, `tie` included. At most `few` are gathered.
  RankSearch(Interval all, Tie tie, int64_t total, int64_t few, Count count, Gather gather)
      : all_(all), tie_(tie), total_(total), few_(few), count_(std::move(count)), gather_(std::move(gather)) {}

  /// What has been counted of all: it will not be asked for.
  void already_counted(std::vector<int64_t> counts) {
    add_tie(all_, counts);
    counted_.emplace(key_of(all_), std::move(counts));
  }

  /// The difference of rank `rank` < total, 0 = the smallest. What was counted and gathered serves later ranks, too.
  double at(int64_t rank) {
    Interval interval = all_;
    int64_t left = total_;
    bool one_value = false;
    while (!one_value && (left - ties_in(interval) > few_ || counted_.contains(key_of(interval)))) {
      const std::vector<int64_t>& counts = once(counted_, interval, [&] { return counts_of(interval); });
      size_t bin = 0;
      while (bin + 1 < counts.size() && rank >= counts[bin]) rank -= counts[bin++];
      left = counts[bin];
      one_value = interval.shift == 0;
      interval = narrowed(interval, static_cast<int>(bin));
    }
    if (one_value) return double_of(interval.low);
    const int64_t ties = ties_in(interval);
    return with_ties(once(gathered_, interval, [&] { return sorted(interval, left - ties); }), ties, rank);
  }

 private:
  using Key = std::pair<uint64_t, int>;

  static Key key_of(const Interval& interval) { return {interval.low, interval.shift}; }

  template <class T, class Make>
  static const T& once(std::map<Key, T>& made, const Interval& interval, Make make) {
    const Key key = key_of(interval);
    const auto found = made.find(key);
    return found != made.end() ? found->second : made.emplace(key, make()).first->second;
  }

  int64_t ties_in(const Interval& interval) const { return bin_of(tie_.value, interval) < 0 ? 0 : tie_.times; }

  void add_tie(const Interval& interval, std::vector<int64_t>& counts) const {
    if (const int bin = bin_of(tie_.value, interval); bin >= 0) counts[static_cast<size_t>(bin)] += tie_.times;
  }

  std::vector<int64_t> counts_of(const Interval& interval) const {
    std::vector<int64_t> counts = count_(interval);
    add_tie(interval, counts);
    return counts;
  }

  std::vector<double> sorted(const Interval& interval, int64_t count) const {
    std::vector<double> values = gather_(interval, count);
    std::sort(values.begin(), values.end());
    return values;
  }

  /// Of rank `rank` among `sorted` and `ties` times the tie.
  double with_ties(const std::vector<double>& sorted, int64_t ties, int64_t rank) const {
    const int64_t less = std::lower_bound(sorted.begin(), sorted.end(), tie_.value) - sorted.begin();
    if (ties > 0 && rank >= less && rank < less + ties) return tie_.value;
    return sorted[static_cast<size_t>(ties > 0 && rank >= less ? rank - ties : rank)];
  }

  Interval all_;
  Tie tie_;
  int64_t total_, few_;
  Count count_;
  Gather gather_;
  std::map<Key, std::vector<int64_t>> counted_;
  std::map<Key, std::vector<double>> gathered_;
};

}  // namespace parity::kernels::cuda
