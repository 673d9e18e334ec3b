// `compare`: any port's recording against the reference's, by replaying the reference's program on the port's values.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "jobs/job_result.hpp"
#include "jobs/unit.hpp"
#include "jobs/variant_plan.hpp"
#include "judge/limits.hpp"
#include "pair/candidate.hpp"
#include "pair/port_pairing.hpp"

namespace parity {

struct PortJobOptions {
  std::string layer = "all";  // globs: rows to report; everything is replayed
  Thresholds limits;
  bool diagnose = true;            // test the named faults and cast placements on every row
  VariantBudget budget;            // of the runs that this takes
  bool paths = false;              // report the best cast placements of every row (diagnose must be on)
  std::string side = "candidate";  // whose values these are: "reference" when it is compared with itself
  std::function<void(double done)> progress = [](double) {};  // share of the program run
  GoOn go_on{};
  WorkUnits* units = nullptr;  // where finished rows come from and go to; the result is empty where it is not reported
};

/// One linear pass: at each paired boundary the reference's program has run on the candidate's earlier values in fp64,
/// in the recorded dtypes, with every op exact and with sums reordered; the candidate's value is measured against
/// these, judged, and becomes what all of them go on from. Memory is bounded by live values. Throws Error for unusable
/// recordings.
JobResult run_port_job(const Dump& dump, const Program& program, const std::vector<CandidateTensor>& candidate,
                       const PortPairing& pairing, const PortJobOptions& options);

}  // namespace parity
