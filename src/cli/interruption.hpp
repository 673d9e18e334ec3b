// A comparison that is interrupted (Ctrl-C, SIGTERM) ends at the next boundary with a report of the rows so far; one
// that is killed outright leaves the report of some seconds before.
#pragma once
#include <chrono>
#include <functional>

#include "core/result.hpp"
#include "jobs/job_result.hpp"

namespace parity::cli {

/// While it lives, the first SIGINT or SIGTERM is noted instead of ending the program; the second ends it.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  bool asked() const;
};

/// For a job's `go_on`: stops it when it is interrupted, and has what there is written with the first row and every few
/// seconds.
class Checkpoints {
 public:
  using Write = std::function<void(const JobResult& so_far)>;
  explicit Checkpoints(Write write) : write_(std::move(write)) {}
  bool operator()(const JobResult& so_far);

 private:
  Interruption interruption_;
  Write write_;
  std::chrono::steady_clock::time_point next_{};  // the first: with the first row
};

/// The row that marks a report as partial; `rows`: how many were compared.
OpResult interrupted_comparison(size_t rows);
bool is_partial(const Report& report);

}  // namespace parity::cli
