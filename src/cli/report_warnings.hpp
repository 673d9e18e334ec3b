// Warnings about a finished report as a whole.
#pragma once
#include <string>
#include <vector>

#include "cli/compare_options.hpp"
#include "core/result.hpp"

namespace parity::cli {

/// Of a report of all rows: what --accept-path declares and nothing needed; a candidate most of whose tensors have no
/// reference.
std::vector<std::string> report_warnings(const Report& report, const Thresholds& limits);

}  // namespace parity::cli
