// What changed since the baseline, as the report files say it.
#pragma once
#include <string>
#include <vector>

#include "core/result.hpp"

namespace parity {

/// For a terminal: headline, the most serious changes, totals.
std::vector<std::string> since_baseline_lines(const SinceBaseline& since);
/// A section of report.md; "" without `report.since_baseline`.
std::string markdown_since_baseline(const Report& report);

}  // namespace parity
