// Timing a function fairly: warm-up apart, several runs, the minimum quoted beside the median.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "core/progress.hpp"

namespace parity {

struct Timing {
  double first = 0;             // seconds of the first run, caches cold
  std::vector<double> seconds;  // of the runs after it, in order
  double minimum() const;       // of `seconds`; of the first run when it is the only one
  double median() const;
};

/// Runs `work` once (first), then `repeats` times; progress is told between runs, never within one.
Timing time_runs(const std::function<void()>& work, int repeats, const ShareDone& progress = nullptr);

/// By how much this process grows from here on: the kernel's record of the largest resident memory begins anew (Linux:
/// clear_refs; where that is not allowed it is the largest so far, and growth below it is not seen).
class GrownMemory {
 public:
  GrownMemory();
  /// Bytes at most, since then.
  int64_t peak() const;

 private:
  int64_t before_ = 0;
};

/// Largest resident memory of this process so far, in bytes (Linux: VmHWM).
int64_t peak_memory();

}  // namespace parity
