// What the failing rows have in common and the passing ones have not: "24 of 24 rows with last dimension 80 fail, 0 of
// 61 others".
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace parity {

/// Chance of each report in which nothing is in common that something is said all the same. Half of it for single
/// attributes, half for pairs.
inline constexpr double kDiscriminatorAlarms = .01;
/// Below this difference of shares (of the failing rows that have the attribute, less that of the passing ones) it says
/// too little to be printed, however certain.
inline constexpr double kDiscriminatorContrast = .5;

struct Discriminator {
  std::string attribute;              // "last dimension = 80", "kind = attention and call = not the first"
  std::vector<std::string> the_same;  // attributes that exactly the same rows have
  int64_t failing_with = 0, with = 0, failing_without = 0, without = 0;
  double p = 1;       // Fisher's exact test, one-sided
  int64_t tried = 0;  // attributes, or pairs of them, that could have been significant

  std::string sentence() const;
};

/// Rows that fail by themselves (fail or shape, not by what they inherit) against rows that pass. The attribute, or
/// pair of attributes when no single one splits as well, with the largest contrast among those that are significant:
/// Fisher's exact test with Tarone's correction (1990: Bonferroni over the tests that could be significant at all given
/// how many rows have the attribute). Empty when nothing splits.
std::optional<Discriminator> discriminate(const Report& report);

/// One-sided: the chance that `overlap` or more of `marked` rows are among the `chosen` of `all`, drawn at random.
double fisher_exact(int64_t overlap, int64_t marked, int64_t chosen, int64_t all);

}  // namespace parity
