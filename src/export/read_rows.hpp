// parity-report/1 back into a Report, with everything that an export shows.
#pragma once
#include <filesystem>

#include "core/result.hpp"

namespace parity {

/// Besides what gate's read_report reads: every statistic, gates, shapes, amplification, blame, unmatched tensors.
/// Throws Error, one line, for whatever is no such report.
Report read_whole_report(const std::filesystem::path& file);

}  // namespace parity
