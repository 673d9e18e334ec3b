#include "selftest/run.hpp"

#include <ATen/Parallel.h>

#include <chrono>

#include "jobs/port_job.hpp"
#include "jobs/sides.hpp"
#include "selftest/own_run.hpp"

namespace parity {
namespace {

SelftestOutcome run_pair(const SelftestPair& pair, const Sides& sides, const Thresholds& limits) {
  Report report;
  PortJobOptions options;
  options.limits = limits;
  report.ops =
      run_port_job(*sides.reference.dump, sides.reference.program, sides.candidate.tensors, sides.pairing, options)
          .rows;
  SelftestOutcome outcome;
  outcome.pair = pair;
  for (const OpResult& row : report.ops) ++outcome.counts[verdict_name(row.verdict)];
  outcome.alarm = overall(report) == Verdict::fail;
  outcome.limits = limit_shares(report.ops);
  if (const OpResult* first = first_divergence(report)) {
    outcome.diverged = true;
    outcome.path = first->path;
    outcome.call = first->call;
    outcome.diagnosis = first->diagnosis;
  }
  return outcome;
}

// Pairs of one reference come one after the other: it is opened for the first of them.
class OpenPair {
 public:
  explicit OpenPair(const std::filesystem::path& folder) : folder_(folder) {}

  /// Is `pair` the first one of its reference?
  bool open(const SelftestPair& pair) {
    const bool first = pair.reference != reference_;
    if (first) sides_ = open_sides(folder_ / pair.reference, folder_ / pair.file, "");
    if (!first) open_candidate(sides_, folder_ / pair.file, "");
    require_program(sides_);
    reference_ = pair.reference;
    return first;
  }
  const Sides& sides() const { return sides_; }

 private:
  const std::filesystem::path& folder_;
  std::string reference_;
  Sides sides_;
};

// One thread: the tensors have some thousand elements. A second one waits by spinning, and doubles the time at best.
void set_threads_of_selftest(const SelftestRun& run) { at::set_num_threads(run.threads > 0 ? run.threads : 1); }

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

SelftestResult run_selftest(const SelftestSuite& suite, const SelftestRun& run) {
  const Stopwatch watch;
  set_threads_of_selftest(run);
  SelftestResult result;
  OpenPair open(suite.folder);
  OwnRun own;
  for (const SelftestPair& pair : suite.pairs) {
    run.begin(pair.file);
    if (open.open(pair)) own = run_own(*open.sides().reference.dump, open.sides().reference.program);
    result.outcomes.push_back(run_pair(pair, open.sides(), {}));
    result.outcomes.back().peers = peer_verdicts(open.sides(), own);
  }
  result.seconds = watch.seconds();
  return result;
}

OutOfSample run_out_of_sample(const SelftestSuite& suite, const SelftestRun& run, const SelftestResult& shipped) {
  const Stopwatch watch;
  set_threads_of_selftest(run);
  OutOfSample out{leave_out(benign_shares(shipped)), shipped};
  OpenPair open(suite.folder);
  for (SelftestOutcome& outcome : out.result.outcomes) {
    const SelftestPair pair = outcome.pair;
    if (!depends_on(pair.family, out.effects)) continue;
    run.begin(pair.file);
    open.open(pair);
    const std::vector<bool> peers = outcome.peers;
    outcome = run_pair(pair, open.sides(), limits_without(pair.family, out.effects, {}));
    outcome.peers = peers;
  }
  out.result.seconds = watch.seconds();
  return out;
}

}  // namespace parity
