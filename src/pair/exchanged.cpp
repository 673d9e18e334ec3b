// Siblings that content has crossed: a port that computes q with v's weights has v's values where q is computed.
#include <fmt/format.h>

#include <algorithm>

#include "pair/forced_pairs.hpp"
#include "pair/limits.hpp"
#include "pair/moved.hpp"

namespace parity {
namespace {

// Were they paired against the order in which the port computes them, by content, or a name learned from content?
bool crossed(const PortPair& one, const PortPair& other) {
  return one.confidence < 1 && other.confidence < 1 &&
         (one.boundary < other.boundary) != (one.candidate < other.candidate);
}

void exchange(PortPair& one, PortPair& other) {
  std::swap(one.candidate, other.candidate);
  std::swap(one.layout, other.layout);
  for (PortPair* pair : {&one, &other}) {
    pair->confidence = kPairLimits.family.carried_on;
    pair->evidence = "order: the port has another's value here, and what it has after it agrees only so";
  }
}

// Do the values that follow come clearly nearer, and none further away? In a softmax that weighs its keys nearly alike
// a wrong q moves the result by a per cent, so that no distance of its own says that it is wrong.
bool nearer(const ForcedPairs& forced, const OffByBoundary& off) {
  const double clearly = kPairLimits.moved.exchanged;
  bool found = false;
  for (const auto& [t, now] : off) {
    if (now > std::max<double>(forced.off(t) * clearly, kPairLimits.evidence.least_noise)) return false;
    found = found || now * clearly < forced.off(t);
  }
  return found;
}

// Both in the other's place: do the values that follow agree?
bool better_exchanged(ForcedPairs& forced, const Program& reference, size_t one, size_t other) {
  const auto mine = forced.theirs(one), yours = forced.theirs(other);
  const Value &here = reference.boundaries[one].value, &there = reference.boundaries[other].value;
  if (!mine || !yours || here.shape != there.shape || here.id == there.id) return false;
  const std::vector<bool> marked = forced.marked();
  std::vector<size_t> next = forced.followers(marked, one), more = forced.followers(marked, other), all;
  std::set_union(next.begin(), next.end(), more.begin(), more.end(), std::back_inserter(all));
  if (all.empty()) return false;
  const OffByBoundary off = forced.off_on(forced.part_to(all, marked), {{here.id, *yours}, {there.id, *mine}});
  if (!nearer(forced, off)) return false;
  forced.believe(off);
  return true;
}

bool share(const std::vector<size_t>& one, const std::vector<size_t>& other) {
  return std::any_of(one.begin(), one.end(),
                     [&](size_t a) { return std::binary_search(other.begin(), other.end(), a); });
}

}  // namespace

void exchange_siblings(ForcedPairs& forced, const Program& reference) {
  const auto before = reference.marked_ancestors(forced.marked());
  std::vector<std::vector<size_t>> after(forced.count());
  std::vector<size_t> guessed;
  for (size_t b = 0; b < forced.count(); ++b) {
    for (const size_t a : before[b]) after[a].push_back(b);
    if (forced.paired(b) != nullptr && forced.paired(b)->confidence < 1) guessed.push_back(b);
  }
  for (const size_t a : guessed)
    for (const size_t b : guessed)
      if (a < b && forced.work > 0 && crossed(*forced.paired(a), *forced.paired(b)) &&
          (share(before[a], before[b]) || share(after[a], after[b])) && better_exchanged(forced, reference, a, b))
        exchange(*forced.paired(a), *forced.paired(b));
}

}  // namespace parity
