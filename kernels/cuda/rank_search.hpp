// Exact ranks among |d| by histograms over the digits of its bits: how counts narrow a rank down until few differences
// are left, which are gathered. Who counts and gathers, a GPU or a loop, is the caller's business.
#pragma once
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "kernels/cuda/digits.hpp"

namespace parity::kernels::cuda {

class RankSearch {
 public:
  /// How many differences that begin with a prefix have each next digit: kBins numbers.
  using Count = std::function<std::vector<int64_t>(const Prefix&)>;
  /// All differences that begin with a prefix, `count` of them, ascending.
  using Gather = std::function<std::vector<double>(const Prefix&, int64_t count)>;

  /// `finite`: how many differences there are. At most `few` are gathered.
  RankSearch(int64_t finite, int64_t few, Count count, Gather gather)
      : finite_(finite), few_(few), count_(std::move(count)), gather_(std::move(gather)) {}

  /// The difference of rank `rank` < finite, 0 = the smallest. What was counted and gathered serves later ranks, too.
  double at(int64_t rank) {
    Prefix prefix;
    int64_t left = finite_;
    while (left > few_ && prefix.digits < kDigits) {
      const std::vector<int64_t>& counts = once(counted_, prefix, [&] { return count_(prefix); });
      uint64_t digit = 0;
      while (digit + 1 < kBins && rank >= counts[digit]) rank -= counts[digit++];
      prefix = {prefix.value << kDigitBits | digit, prefix.digits + 1};
      left = counts[digit];
    }
    if (prefix.digits == kDigits) return double_of(prefix.value);
    return once(gathered_, prefix, [&] { return gather_(prefix, left); })[static_cast<size_t>(rank)];
  }

 private:
  using Key = std::pair<int, uint64_t>;

  template <class T, class Make>
  static const T& once(std::map<Key, T>& made, const Prefix& prefix, Make make) {
    const Key key{prefix.digits, prefix.value};
    const auto found = made.find(key);
    return found != made.end() ? found->second : made.emplace(key, make()).first->second;
  }

  int64_t finite_, few_;
  Count count_;
  Gather gather_;
  std::map<Key, std::vector<int64_t>> counted_;
  std::map<Key, std::vector<double>> gathered_;
};

}  // namespace parity::kernels::cuda
