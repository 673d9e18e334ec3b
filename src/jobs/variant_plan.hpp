// Which named changes are run how: all in step with the replays where that stays within a budget of work and memory;
// where a compared value has a long stretch of program before it, apart from the replays, when it is reached.
//
// Work is counted (multiplications), not timed, so that what is tried, and with it what is named, does not depend on
// how busy a machine is. Memory decides how many variants run side by side.
#pragma once
#include <vector>

#include "core/segment.hpp"
#include "diagnose/faults/catalogue.hpp"
#include "jobs/limits.hpp"

namespace parity {

struct VariantBudget {
  double replays = 2;             // what variant runs may take, in units of the plain replays' work
  int64_t bytes = 0;              // what they may hold; 0: half of what the machine has free
  double least = kSearch.always;  // multiplications allowed whatever `replays` is

  /// `bytes`, or half of the free memory.
  int64_t memory() const;
};

struct VariantPlan {
  std::vector<bool> apart;      // by boundary: its named changes are run when it is reached (stretch_search.hpp)
  std::vector<bool> worth;      // by op: does it lie before a compared value that is not apart? Nothing else matters
  std::vector<double> work;     // by op
  std::vector<double> allowed;  // by boundary, if apart: the work that its search may take
  int64_t bytes = 0;            // that variants may hold at once
};

/// `segments`: one a boundary, those of compared values not empty. `lanes`: replays that go in step.
VariantPlan plan_variants(const ProgramIndex& program, const std::vector<Segment>& segments, const Catalogue& catalogue,
                          size_t lanes, const VariantBudget& budget);

/// Work of looking at the changes of a stretch to first order (trace/first_order.hpp).
double first_order_work(double stretch, double changed_ops);

/// Work of holding one changed value against the candidate's.
double matching_work(const Value& value);

/// Directions besides the difference that the size of a change is estimated from.
inline constexpr int kSketches = 4;

}  // namespace parity
