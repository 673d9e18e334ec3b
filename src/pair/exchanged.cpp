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

// Both in the other's place: do the values that follow agree?
bool better_exchanged(ForcedPairs& forced, const Program& reference, size_t one, size_t other) {
  const auto mine = forced.theirs(one), yours = forced.theirs(other);
  const Value &here = reference.boundaries[one].value, &there = reference.boundaries[other].value;
  if (!mine || !yours || here.shape != there.shape || here.id == there.id) return false;
  const std::vector<bool> marked = forced.marked_without(forced.count());
  std::vector<size_t> next = forced.followers(marked, one), more = forced.followers(marked, other), all;
  std::set_union(next.begin(), next.end(), more.begin(), more.end(), std::back_inserter(all));
  if (std::none_of(all.begin(), all.end(), [&](size_t t) { return forced.off_by_far(t); })) return false;
  const OffByBoundary off = forced.off_on(forced.part_to(all, marked), {{here.id, *yours}, {there.id, *mine}});
  if (forced.healed(off) == 0) return false;
  forced.believe(off);
  return true;
}

}  // namespace

void exchange_siblings(ForcedPairs& forced, const Program& reference) {
  const auto ancestors = reference.marked_ancestors(forced.marked_without(forced.count()));
  for (size_t f = 0; f < forced.count(); ++f) {
    if (!forced.off_by_far(f)) continue;
    for (const size_t a : ancestors[f])
      for (const size_t b : ancestors[f])
        if (a < b && forced.work > 0 && forced.off_by_far(f) && crossed(*forced.paired(a), *forced.paired(b)) &&
            better_exchanged(forced, reference, a, b))
          exchange(*forced.paired(a), *forced.paired(b));
  }
}

}  // namespace parity
