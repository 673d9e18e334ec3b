#include "weights/ordered.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "weights/numbered.hpp"

namespace parity {
namespace {

using LayerNumbers = std::vector<int64_t>;
using NumberedUnits = std::map<LayerNumbers, size_t>;  // units of the same words

// Without those that have a unit which is a part of a tensor: parts share their names.
std::map<std::string, NumberedUnits> groups_of(const std::vector<Unit>& units) {
  std::map<std::string, NumberedUnits> groups;
  for (size_t u = 0; u < units.size(); ++u) {
    const Numbered name = numbered(units[u].name.path);
    groups[name.words].emplace(name.numbers, u);
  }
  std::erase_if(groups, [&](const auto& group) {
    return std::ranges::any_of(group.second, [&](const auto& unit) { return units[unit.second].slice.has_value(); });
  });
  return groups;
}

class Places {
 public:
  Places(const std::vector<Unit>& reference, const std::vector<Unit>& candidate, const std::vector<UnitMatch>& held)
      : candidate_(candidate), mine_(reference.size()), theirs_(groups_of(candidate)) {
    std::vector<size_t> owners(candidate.size(), 0);
    for (const UnitMatch& h : held) mine_[h.reference].push_back(h.candidate), ++owners[h.candidate];
    for (std::vector<size_t>& holders : mine_)  // one another's alone, and whole, or nobody's
      if (holders.size() != 1 || owners[holders[0]] != 1 || candidate[holders[0]].slice) holders.clear();
    for (const auto& [words, group] : groups_of(reference)) {
      if (group.size() < 2) continue;
      if (!all_in_order(group) && !most_by_number(group)) most_by_rank(group);
    }
  }

  std::map<size_t, Place> take() { return std::move(places_); }

 private:
  // Where one side counts its layers with one number and the other with two: names that are equal but
  // for their numbers hold one another's contents, each one's once, and in the order of the numbers.
  bool all_in_order(const NumberedUnits& group) {
    std::vector<LayerNumbers> own, in_turn;  // numbers: of the group, and of those that hold it
    NumberedUnits holders;
    std::set<std::string> their_words;
    for (const auto& [numbers, r] : group) {
      if (mine_[r].empty()) return false;
      const Numbered name = numbered(candidate_[mine_[r][0]].name.path);
      own.push_back(numbers), in_turn.push_back(name.numbers);
      holders.emplace(name.numbers, mine_[r][0]), their_words.insert(name.words);
    }
    const bool ascending = std::ranges::is_sorted(in_turn), equal = std::ranges::is_permutation(own, in_turn);
    if (their_words.size() > 1 || holders.size() < group.size() || !(ascending || equal)) return false;
    for (const auto& [numbers, r] : group)
      places_[r] = {*their_words.begin(), equal ? holders.at(numbers) : mine_[r][0]};
    return true;
  }

  // Most are held under the same words, and their numbers away by the same steps (none; one where a side counts from
  // 1): so should be the others, whose content is faulty.
  bool most_by_number(const NumberedUnits& group) {
    std::map<std::pair<std::string, LayerNumbers>, size_t> votes;  // words, steps
    for (const auto& [numbers, r] : group) {
      if (mine_[r].empty()) continue;
      Numbered name = numbered(candidate_[mine_[r][0]].name.path);
      if (name.numbers.size() != numbers.size()) continue;
      std::ranges::transform(name.numbers, numbers, name.numbers.begin(), std::minus());
      ++votes[{name.words, name.numbers}];
    }
    const auto most = std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; });
    if (most == votes.end() || most->second < 2 || 2 * most->second <= group.size()) return false;
    const auto& [words, steps] = most->first;
    const auto there = theirs_.find(words);
    if (there == theirs_.end()) return false;
    for (const auto& [numbers, r] : group) {
      LayerNumbers wanted(numbers.size());
      std::ranges::transform(numbers, steps, wanted.begin(), std::plus());
      const auto found = there->second.find(wanted);
      places_[r] = {words, found == there->second.end() ? std::nullopt : std::optional(found->second)};
    }
    return true;
  }

  // As many tensors on both sides, and most are held by the one of the same rank: so should be the others.
  void most_by_rank(const NumberedUnits& group) {
    for (const auto& [words, there] : theirs_) {
      if (there.size() != group.size()) continue;
      size_t held = 0;
      auto c = there.begin();
      for (const auto& [numbers, r] : group) held += mine_[r] == std::vector{c->second}, ++c;
      if (held < 2 || 2 * held <= group.size()) continue;
      c = there.begin();
      for (const auto& [numbers, r] : group) places_[r] = {words, (c++)->second};
    }
  }

  const std::vector<Unit>& candidate_;
  std::vector<std::vector<size_t>> mine_;  // by reference unit: the candidate unit that holds it
  std::map<std::string, NumberedUnits> theirs_;
  std::map<size_t, Place> places_;
};

}  // namespace

std::map<size_t, Place> ordered_places(const std::vector<Unit>& reference, const std::vector<Unit>& candidate,
                                       const std::vector<UnitMatch>& held) {
  return Places(reference, candidate, held).take();
}

}  // namespace parity
