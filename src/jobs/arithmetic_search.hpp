// Which arithmetic below the cast (diagnose/faults/arithmetic.hpp) explains a compared value that stands out: the
// stretch of program before it runs again with one change after the other, the likeliest first. And the stretch under a
// change that is declared, in all the arithmetics that values are judged by.
#pragma once
#include <set>

#include "diagnose/finding.hpp"
#include "jobs/stretch.hpp"
#include "judge/limits.hpp"
#include "trace/lanes.hpp"

namespace parity {

struct ArithmeticFound {
  std::vector<Finding> findings;
  Hypotheses tried;
};

class ArithmeticSearch {
 public:
  /// `limits` stay with the caller. `work`: multiplications that all searches together may take; `bytes`: that changes
  /// may hold at once.
  ArithmeticSearch(const Dump& dump, const ProgramIndex& index, const Thresholds& limits, double work, int64_t bytes);

  /// Throws Error when the stretch cannot be run alone.
  ArithmeticFound at(const Stretch& stretch);
  /// What was spent, and which names were found, since this was asked last: nothing else is carried from one search to
  /// the next.
  std::pair<double, std::vector<std::string>> news();
  /// The same of a search elsewhere, of a stretch before all those to come.
  void hear(double work, const std::vector<std::string>& found);
  /// What the replays have at the stretch's end, one after the other up to the last valid arithmetic, when every one of
  /// them computes with this change. Empty: it has no effect there.
  std::vector<at::Tensor> under(const Stretch& stretch, const FaultHypothesis& change) const;

 private:
  std::vector<DeviatingValue> run(const Stretch& stretch, const std::vector<Deviation>& changes, size_t lanes) const;
  bool try_some(const Stretch& stretch, Hypotheses some, ArithmeticFound& found);

  const Dump& dump_;
  const ProgramIndex& index_;
  const Thresholds& limits_;
  double work_;
  const int64_t bytes_;
  const std::vector<double> work_of_ops_;
  std::set<std::string> seen_;  // faults that explained an earlier value: tried first
  double spent_ = 0;
  std::vector<std::string> found_;
};

}  // namespace parity
