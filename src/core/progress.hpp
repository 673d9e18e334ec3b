// Progress with an estimate of the time left, on a terminal and only when the work takes over a second; silent in a
// pipe.
#pragma once
#include <chrono>
#include <string>

namespace parity {

class Progress {
 public:
  /// `steps` are expected to take about as long as each other. `quiet` silences it everywhere.
  Progress(int64_t steps, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// One more step begins; `what` is shown beside the bar.
  void step(const std::string& what);

 private:
  void clear();

  int64_t steps_, done_ = -1;
  bool shown_ = false, enabled_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace parity
