// What explains a compared value that a long stretch of program lies before: thousands of named changes, each of which
// would have to be run to the stretch's end. The likeliest (likely_changes.hpp) are run, a few beside each other, until
// one explains it or the budget of work is used up.
#pragma once
#include "diagnose/finding.hpp"
#include "jobs/stretch.hpp"
#include "jobs/variant_plan.hpp"
#include "judge/limits.hpp"

namespace parity {

struct Searched {
  std::vector<Finding> findings;  // of the changes that were run
  int64_t directions = 0;         // changes put against the difference, in either way
  VariantCoverage coverage;
};

/// Which named changes: `gross` are FaultHypothesis::gross.
enum class Sought { all, gross, not_gross };

/// `sought` gross: within what the plan allowed for running them beside the replays. Throws Error when the stretch
/// cannot be run alone.
Searched search_stretch(const Dump& dump, const Program& program, const Catalogue& catalogue, const VariantPlan& plan,
                        const Thresholds& limits, const Stretch& stretch, Sought sought);

}  // namespace parity
