// parity-report/1 back into a Report, as far as the gate looks at it: what was measured, its limits, and where.
#pragma once
#include <filesystem>

#include "core/result.hpp"

namespace parity {

/// Throws Error, one line, for whatever is no such report or holds nothing that was compared.
Report read_report(const std::filesystem::path& file);

}  // namespace parity
