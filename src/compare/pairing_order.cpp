#include "compare/pairing_order.hpp"

#include <algorithm>
#include <limits>

namespace parity {

PairingOrder::PairingOrder(const Program& reference, const std::vector<std::pair<size_t, size_t>>& known)
    : after_(reference.boundaries.size(), -1),
      before_(reference.boundaries.size(), std::numeric_limits<int64_t>::max()) {
  const size_t n = reference.boundaries.size();
  const auto direct = reference.marked_ancestors(std::vector<bool>(n, true));
  std::vector<int64_t> counterpart(n, -1);
  for (const auto& [b, c] : known) counterpart[b] = static_cast<int64_t>(c);
  size_t dependent = 0, contradictions = 0;
  for (size_t b = 0; b < n; ++b) {
    for (const size_t a : direct[b]) after_[b] = std::max(after_[b], counterpart[a] >= 0 ? counterpart[a] : after_[a]);
    if (counterpart[b] < 0 || after_[b] < 0) continue;
    ++dependent;
    contradictions += after_[b] > counterpart[b];
  }
  for (size_t b = n; b-- > 0;)
    for (const size_t a : direct[b])
      before_[a] = std::min(before_[a], counterpart[b] >= 0 ? counterpart[b] : before_[b]);
  ordered_ = 10 * contradictions <= dependent;
}

}  // namespace parity
