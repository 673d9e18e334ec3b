// What `compare` and `watch` have in common once both sides are there.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "cli/compare_options.hpp"
#include "cli/export_places.hpp"
#include "core/result.hpp"
#include "jobs/sides.hpp"

namespace parity::cli {

/// Compares, writes every report that `options` ask for and prints the summary; returns the exit status. `amend`: what
/// the caller knows besides, put into the report before it is written.
int report_on(const Sides& sides, const CompareOptions& options, const std::vector<ExportPlace>& exports,
              const std::string& command_line, const std::function<void(Report&)>& amend = nullptr);

}  // namespace parity::cli
