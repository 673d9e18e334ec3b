// Hybrid runs: some of the model's ops by the reference's program, the others by the port, each on what the others
// gave.
#pragma once
#include <vector>

#include "jobs/candidate_runs.hpp"
#include "jobs/model_job.hpp"

namespace parity {

/// Every paired value of the hybrid: those `taken` as the reference's program (replayed on this machine under
/// `precision`) computes them from the values before them, the others as the port does. Both sides run alternately,
/// each on the other's latest values, until none changes: once for every change of sides along the model, and in
/// whatever order either side computes what does not depend on each other.
Values run_hybrid(const ModelFactory& make, const Dump& dump, const Program& program, const Pairing& pairing,
                  Precision precision, const std::vector<bool>& taken);

}  // namespace parity
