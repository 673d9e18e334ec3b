// Progress with an estimate of the time left, on a terminal and only when the work takes over a second; silent in a
// pipe.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
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

/// Told by long work what share of it is done, 0 to 1; empty: nobody listens.
using ShareDone = std::function<void(double done)>;

/// A bar for such work, shown as `Progress` is, from the first share that it is told: pass std::ref of it.
class ShareBar {
 public:
  ShareBar(std::string what, bool quiet) : what_(std::move(what)), quiet_(quiet) {}
  void operator()(double done);

 private:
  std::string what_;
  bool quiet_;
  std::optional<Progress> progress_;
  int shown_ = 0;
};

/// The same for a part of the work, from share `begin` to share `end` of the whole.
ShareDone part_of(const ShareDone& whole, double begin, double end);

}  // namespace parity
