// Who holds what, and what is wrong with it: units of the reference settled one by one, by content, by name, by search.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "weights/conventions.hpp"
#include "weights/faults.hpp"
#include "weights/units.hpp"

namespace parity {

/// What became of one reference unit. Not settled: no candidate unit holds it or is named for it.
struct Outcome {
  bool settled = false;
  std::optional<size_t> candidate;
  Order order;
  std::optional<Fault> fault;
  Rounding rounding;
  std::string evidence, note;
  bool tied = false, by_name_alone = false;
};

/// Both sides' units, who holds whose content, and the outcomes.
struct Settlement {
  const WeightSide &reference, &candidate;
  Units units;
  std::vector<std::vector<size_t>> holders, owners;  // indices into units.held, by reference and by candidate unit
  std::vector<Outcome> outcomes;                     // by reference unit
  std::set<size_t> claimed;                          // candidate units

  const Unit& mine(size_t r) const { return units.reference[r]; }
  const Unit& theirs(size_t c) const { return units.candidate[c]; }
  at::Tensor load_mine(size_t r) const { return sliced(reference.load(mine(r).tensor), mine(r).slice); }
  at::Tensor load_theirs(size_t c) const { return sliced(candidate.load(theirs(c).tensor), theirs(c).slice); }
  /// The reference unit whose content candidate unit `c` holds; owners[c] is not empty.
  size_t owner(size_t c) const { return units.held[owners[c][0]].reference; }
};

/// "h.0.attn.c_attn.weight[0:64 of axis 1]".
std::string path_of(const Unit& unit);

/// Throws Error for damaged data.
Settlement settle(const WeightSide& reference, const WeightSide& candidate, const AuditProgress& progress);

}  // namespace parity
