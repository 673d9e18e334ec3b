// Runs the suite: every pair through the same code as `compare`, and through the peers' rules.
#pragma once
#include <functional>

#include "selftest/judge.hpp"
#include "selftest/suite.hpp"

namespace parity {

struct SelftestRun {
  int threads = 0;                                                                 // of LibTorch; 0: one
  std::function<void(const std::string& file)> begin = [](const std::string&) {};  // before each pair is run
};

/// A reference is opened and run on its own inputs once for all its candidates; what `compare` replays depends on each
/// candidate's values and is computed for each. Throws Error as `open_sides` and `run_port_job`.
SelftestResult run_selftest(const SelftestSuite& suite, const SelftestRun& run);

/// The families that a limit depends on again, under limits fitted without them; what became of the others stands in
/// `shipped`, a run of the same suite.
OutOfSample run_out_of_sample(const SelftestSuite& suite, const SelftestRun& run, const SelftestResult& shipped);

}  // namespace parity
