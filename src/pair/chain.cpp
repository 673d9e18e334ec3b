#include "pair/chain.hpp"

#include <algorithm>

namespace parity {
namespace {

struct Best {
  double weight = 0;
  ptrdiff_t link = -1;
};

// Maximum over a prefix of places.
class PrefixMaximum {
 public:
  explicit PrefixMaximum(size_t places) : tree_(places + 1) {}
  Best before(size_t place) const {  // over places 0 … place - 1
    Best best;
    for (; place > 0; place &= place - 1)
      if (tree_[place].weight > best.weight) best = tree_[place];
    return best;
  }
  void raise(size_t place, Best value) {
    for (size_t i = place + 1; i < tree_.size(); i += i & (~i + 1))
      if (value.weight > tree_[i].weight) tree_[i] = value;
  }

 private:
  std::vector<Best> tree_;
};

}  // namespace

std::vector<size_t> heaviest_chain(const std::vector<ChainLink>& links, size_t references) {
  PrefixMaximum prefix(references);
  std::vector<ptrdiff_t> previous(links.size(), -1);
  std::vector<double> weight(links.size());
  Best best;
  for (size_t begin = 0; begin < links.size();) {
    size_t end = begin;  // all links of one candidate see only earlier candidates
    for (; end < links.size() && links[end].candidate == links[begin].candidate; ++end) {
      const Best before = prefix.before(links[end].reference);
      previous[end] = before.link;
      weight[end] = before.weight + links[end].weight;
    }
    for (; begin < end; ++begin) {
      prefix.raise(links[begin].reference, {weight[begin], static_cast<ptrdiff_t>(begin)});
      if (weight[begin] > best.weight) best = {weight[begin], static_cast<ptrdiff_t>(begin)};
    }
  }
  std::vector<size_t> chain;
  for (ptrdiff_t i = best.link; i >= 0; i = previous[static_cast<size_t>(i)]) chain.push_back(static_cast<size_t>(i));
  std::reverse(chain.begin(), chain.end());
  return chain;
}

}  // namespace parity
