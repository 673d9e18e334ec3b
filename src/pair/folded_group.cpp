#include "pair/folded_group.hpp"

#include <algorithm>
#include <set>

#include "pair/folded.hpp"
#include "pair/limits.hpp"

namespace parity {
namespace {

class Growing {
 public:
  Growing(ForcedPairs& forced, const Program& reference, size_t b)
      : forced_(forced), reference_(reference), direct_(reference.marked_ancestors(forced.marked())), group_{b} {}

  std::optional<FoldedGroup> run(WithoutPairs found) {
    const MovedLimits& limits = kPairLimits.moved;
    for (int round = 1; !found.off.empty(); ++round) {
      const std::vector<size_t> targets = behind();
      if (agrees(found, targets)) return told(found);
      const size_t before = group_.size();
      grow(found);
      if (group_.size() == before || static_cast<double>(group_.size()) > limits.group || round == limits.rounds ||
          forced_.work <= 0)
        break;
      found = without_pairs(forced_, reference_, {group_.begin(), group_.end()}, behind());
    }
    return std::nullopt;
  }

 private:
  std::vector<size_t> behind() const {
    const std::vector<bool> marked = forced_.marked_without({group_.begin(), group_.end()});
    std::set<size_t> found;
    for (const size_t member : group_)
      for (const size_t t : forced_.followers(marked, member)) found.insert(t);
    return {found.begin(), found.end()};
  }

  bool agrees(const WithoutPairs& found, const std::vector<size_t>& targets) const {
    const bool shows = std::any_of(targets.begin(), targets.end(), [&](size_t t) { return forced_.off_by_far(t); });
    return (shows ? forced_.healed(found.off) > 0 : side_by_side_) && follows_closely(reference_, found.off);
  }

  void grow(const WithoutPairs& found) {
    std::set<size_t> more;
    for (const auto& [t, off] : found.off) {
      if (off <= kPairLimits.moved.far) continue;
      if (!folded_at(forced_, found, t).empty())
        more.insert(t);
      else
        add_ancestors(t, more);
    }
    for (const size_t member : group_) add_ancestors(member, more);
    group_.insert(more.begin(), more.end());
  }

  void add_ancestors(size_t t, std::set<size_t>& more) {
    for (const size_t a : direct_[t])
      if (a < t && !group_.contains(a) && forced_.off_by_far(a)) side_by_side_ = more.insert(a).second || side_by_side_;
  }

  std::optional<FoldedGroup> told(const WithoutPairs& found) const {
    FoldedGroup group{{group_.begin(), group_.end()}, {}, found.off};
    for (const size_t member : group.members) group.weights.push_back(folded_at(forced_, found, member));
    if (std::find(group.weights.begin(), group.weights.end(), "") != group.weights.end()) return std::nullopt;
    return group;
  }

  ForcedPairs& forced_;
  const Program& reference_;
  const std::vector<std::vector<size_t>> direct_;  // by paired boundary: those that it is computed from
  std::set<size_t> group_;
  bool side_by_side_ = false;  // holds values of which none is computed from the other
};

}  // namespace

bool follows_closely(const Program& reference, const OffByBoundary& off) {
  return std::all_of(off.begin(), off.end(), [&](const auto& at) {
    return at.second <= folded_limit(reference.boundaries[at.first].value.dtype);
  });
}

std::string folded_at(const ForcedPairs& forced, const WithoutPairs& found, size_t b) {
  const auto value = found.values.find(b);
  const auto tensor = forced.theirs(b);
  return value != found.values.end() && tensor ? folded_in_weights(value->second, *tensor) : "";
}

std::optional<FoldedGroup> folded_group(ForcedPairs& forced, const Program& reference, size_t b,
                                        const WithoutPairs& found) {
  return Growing(forced, reference, b).run(found);
}

}  // namespace parity
