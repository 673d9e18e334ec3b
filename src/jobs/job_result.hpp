// What every comparison gives: rows and what goes with them.
#pragma once
#include <string>
#include <vector>

#include "core/result.hpp"

namespace parity {

struct JobResult {
  std::vector<OpResult> rows;  // by execution order of the reference
  Coverage coverage;
  std::vector<DtypePath> dtype_paths;
  std::vector<std::string> warnings;
};

}  // namespace parity
