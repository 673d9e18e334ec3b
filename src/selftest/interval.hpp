// How far a share that was counted may lie from the one that more pairs would show.
#pragma once
#include <optional>

namespace parity {

struct Interval {
  double low = 0, high = 1;
};

/// Wilson's score interval of a binomial share at 95 %: E. B. Wilson 1927, Probable inference, the law of succession,
/// and statistical inference, J. Am. Stat. Assoc. 22:209. Unlike hits / trials +- 1.96 standard errors it says
/// something at 0 and at 100 %. nullopt without trials.
std::optional<Interval> wilson(int hits, int trials);

/// The probability that `drawn` of `all` things, drawn without putting back, have at least one of `marked` among them
/// (hypergeometric): how surely a sample notices so many lost faults.
double chance_to_notice(int all, int marked, int drawn);

}  // namespace parity
