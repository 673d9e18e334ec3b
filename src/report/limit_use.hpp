// How much of its limits a row uses.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace parity {

/// What was held against a limit.
std::optional<double> measured_against(const OpResult& op, const Limit& limit);

/// Measured over limit; of a share that must be large, what is missing over what may be missing. Infinite where nothing
/// is allowed and something measured; absent when the number is, or when the limit does not decide alone.
std::optional<double> share_of_limit(const OpResult& op, const Limit& limit);
/// The largest over a row's limits, the logic gate's included; absent when none applies. More than 1 fails.
std::optional<double> share_of_limits(const OpResult& op);

/// "bitwise_equal_share 0.83 (must be >= 0.999; origin)"
std::string limit_line(const OpResult& op, const Limit& limit);
/// Those that do not hold.
std::vector<std::string> broken_limit_lines(const OpResult& op);
/// "bitwise_equal_share >= 0.999, candidate_error <= 0.002": without what was measured and where they come from.
std::string limits_text(const OpResult& op);

}  // namespace parity
