// The first op that is wrong, on its own: what the report's reader debugs with.
#pragma once
#include <filesystem>

#include "core/result.hpp"
#include "jobs/sides.hpp"

namespace parity::cli {

/// Extracts the first divergence, with the port's values around it, to `folder`/first_divergence.h5, and puts its name
/// and a C++ test of it (cli/snippet.hpp) into the report. Nothing when there is none or the reference has no program;
/// a warning in the report when that op cannot be cut out.
void attach_repro(Report& report, const Sides& sides, const std::filesystem::path& folder);

}  // namespace parity::cli
