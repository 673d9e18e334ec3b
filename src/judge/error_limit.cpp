#include "judge/error_limit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"

namespace parity {

Limit error_limit(const Errors& errors, double count, at::ScalarType dtype, const Segment& segment,
                  const Thresholds& limits) {
  const double unit = least_roundoff(dtype);
  const double few = 1 + limits.sampling_sigma.value / std::sqrt(count);
  const auto null_of = [&](double roundings) {
    return std::max(errors.null_error,
                    errors.scale > 0 ? limits.rounding_floor.value * std::sqrt(roundings) * unit : 0);
  };
  if (is_half(dtype)) {
    const double null = null_of(1);
    const Threshold& factor = segment.attention ? limits.half_attention_ratio : limits.half_ratio;
    return {"candidate_error", null * factor.value * few, false,
            fmt::format("null {:.2g} x {}: {}", null, factor.value, factor.origin)};
  }
  const double sum = errors.scale > 0 ? limits.fp32_sum_factor.value * std::sqrt(segment.sum_length) * unit : 0;
  // Of a chain of elementwise ops each rounds, and on the few numbers of a decode step (one a head) by more than the
  // three arithmetics of the null happen to: -exp(a) softplus(x) by numpy's functions on four numbers exceeds 1.6 units
  // in 14 % of all draws, 4.5 in none of 5000 (tests/python/test_loops.py).
  const double null = few * null_of(segment.products == 0 ? std::max<double>(1, segment.ops.size()) : 1);
  return {"candidate_error", std::max(limits.fp32_null_factor.value * null, sum), false,
          fmt::format("null {:.2g} x {}, sum of {}: {}", null, limits.fp32_null_factor.value, segment.sum_length,
                      limits.fp32_null_factor.origin)};
}

double logic_limit(const Segment& segment, const Thresholds& limits) {
  return std::max(limits.logic_rel_l2.value,
                  limits.logic_sum_factor.value * std::sqrt(segment.sum_length) * unit_roundoff(at::kDouble));
}

double near_recorded(const Evidence& evidence, const Segment& segment, const Thresholds& limits) {
  const double unit = least_roundoff(evidence.reference_dtype);
  const double sum = limits.fp32_sum_factor.value * std::sqrt(segment.sum_length) * unit;
  const Threshold& factor = is_half(evidence.reference_dtype) ? limits.half_ratio : limits.fp32_null_factor;
  const double apart = factor.value * evidence.null_apart;
  return std::max({unit, sum, apart < limits.undecided.value ? apart : 0});
}

}  // namespace parity
