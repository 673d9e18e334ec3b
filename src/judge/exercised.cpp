#include "judge/exercised.hpp"

namespace parity {
namespace {

constexpr int64_t kMostlyZero = 10;  // one in ten elements must be something else

}  // namespace

std::string why_not_exercised(const Stats& s) {
  if (s.count == 0) return "empty";
  if (s.nan_reference == s.count) return "nothing finite";
  if (s.count == 1) return "";
  if (s.constant_reference) return "constant";
  return (s.count - s.zeros_reference) * kMostlyZero < s.count ? "more than 90 % zero" : "";
}

}  // namespace parity
