// Every number that decides in src/jobs what is searched for, each with what it follows from. None makes a verdict:
// that is src/judge/limits.hpp; one too small costs time, one too large a name.
#pragma once
#include "core/limit.hpp"

namespace parity {

/// Changes that are run because they may explain a row (likely_changes.cpp, variant_plan.hpp).
struct SearchLimits {
  Constant along{.02, "of the squared difference: a change that points along it by less explains none of it"};
  Constant always{2e11,
                  "multiplications allowed whatever the budget, some 5 s on two cores: small models are tried whole"};
  Constant match_element{500,
                         "multiplications of holding a changed value against the candidate's, an element: some "
                         "forty passes in fp64, 15 ns on two cores"};
  Constant match{6e6, "and however small it is: as many calls, 4 us each"};
};

/// Arithmetic below the cast (judged_row.cpp, arithmetic_search.cpp).
struct ArithmeticLimits {
  Constant largest{.5, "relative error beyond which no number format is left: weights of 4 bits make .1"};
  Constant whole{.95, "of the squared difference: a named fault that explains it needs no other name"};
  Constant found{.98, "of the squared difference: nothing else is looked for"};
};

/// What a replay here may differ by from what was recorded elsewhere (reproduction.cpp).
struct ReproductionLimits {
  Constant shortest_sum{64, "terms: a shorter row is the result of a product whose sums are not shorter than that"};
};

/// What amplification is measured with: relative; far above fp64's roundings, far below the ops' curvature.
inline constexpr double kPerturbation = 0x1p-16;

inline constexpr SearchLimits kSearch;
inline constexpr ReproductionLimits kReproduction;
inline constexpr ArithmeticLimits kArithmeticSearch;

}  // namespace parity
