#include "selftest/interval.hpp"

#include <algorithm>
#include <cmath>

namespace parity {

std::optional<Interval> wilson(int hits, int trials) {
  if (trials <= 0) return std::nullopt;
  constexpr double kZ = 1.959963984540054;  // of the standard normal distribution at 97.5 %
  const double n = trials, share = hits / n, z2 = kZ * kZ;
  const double middle = (share + z2 / (2 * n)) / (1 + z2 / n);
  const double half = kZ * std::sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n);
  return Interval{hits == 0 ? 0 : std::max(0., middle - half), hits == trials ? 1 : std::min(1., middle + half)};
}

double chance_to_notice(int all, int marked, int drawn) {
  double none = 1;
  for (int i = 0; i < marked; ++i) none *= std::max(0., static_cast<double>(all - drawn - i) / (all - i));
  return 1 - none;
}

}  // namespace parity
