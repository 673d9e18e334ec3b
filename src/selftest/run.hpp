// Runs the suite: every pair through the same code as `compare`, and through the peers' rules.
#pragma once
#include <functional>

#include "selftest/judge.hpp"
#include "selftest/suite.hpp"

namespace parity {

/// `threads`: of LibTorch; 0: as each reference was recorded. `begin` is called with each pair's file before it is run.
/// Throws Error as `open_sides` and `run_port_job`.
SelftestResult run_selftest(const SelftestSuite& suite, int threads,
                            const std::function<void(const std::string& file)>& begin);

}  // namespace parity
