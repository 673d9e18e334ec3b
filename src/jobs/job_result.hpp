// What every comparison gives: rows and what goes with them.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace parity {

struct JobResult {
  std::vector<OpResult> rows;  // by execution order of the reference
  Coverage coverage;
  std::vector<DtypePath> dtype_paths;
  std::vector<LogitPair> logits;  // free-running
  std::vector<std::string> warnings;
  bool interrupted = false;  // rows end where the job was asked to stop
};

/// Asked again and again while a job runs, with what it has so far; false: stop, and give that. Empty: never.
using GoOn = std::function<bool(const JobResult& so_far)>;

}  // namespace parity
