// The one exception of the project: unusable input or usage. The command line prints it as one line and exits with
// status 2.
#pragma once
#include <stdexcept>
#include <string>

namespace parity {

/// What happened, where (file, dataset, path), and what to do about it, in one line.
/// Never caught to form a verdict: a crash is not a comparison.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace parity
