#include "selftest/run.hpp"

#include <ATen/Parallel.h>

#include <chrono>

#include "jobs/port_job.hpp"
#include "jobs/sides.hpp"
#include "selftest/own_run.hpp"

namespace parity {
namespace {

SelftestOutcome run_pair(const SelftestPair& pair, const Sides& sides, const OwnRun& own) {
  Report report;
  report.ops =
      run_port_job(*sides.reference.dump, sides.reference.program, sides.candidate.tensors, sides.pairing, {}).rows;
  SelftestOutcome outcome;
  outcome.pair = pair;
  for (const OpResult& row : report.ops) ++outcome.counts[verdict_name(row.verdict)];
  outcome.alarm = overall(report) == Verdict::fail;
  if (const OpResult* first = first_divergence(report)) {
    outcome.diverged = true;
    outcome.path = first->path;
    outcome.call = first->call;
    outcome.diagnosis = first->diagnosis;
  }
  outcome.peers = peer_verdicts(sides, own);
  return outcome;
}

}  // namespace

SelftestResult run_selftest(const SelftestSuite& suite, int threads,
                            const std::function<void(const std::string& file)>& begin) {
  const auto start = std::chrono::steady_clock::now();
  SelftestResult result;
  std::string reference;  // whose own run is kept
  OwnRun own;
  for (const SelftestPair& pair : suite.pairs) {
    begin(pair.file);
    const Sides sides = open_sides(suite.folder / pair.reference, suite.folder / pair.file, "");
    require_program(sides);
    const int recorded = sides.reference.dump->provenance().value("threads", 0);
    if (const int wanted = threads > 0 ? threads : recorded; wanted > 0) at::set_num_threads(wanted);
    if (pair.reference != reference) own = run_own(*sides.reference.dump, sides.reference.program);
    reference = pair.reference;
    result.outcomes.push_back(run_pair(pair, sides, own));
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace parity
