// What to run next, and why: for people, and for scripts that read the JSON.
#pragma once
#include <string>
#include <vector>

#include "core/result.hpp"

namespace parity {

struct NextStep {
  std::string command, why;
};

/// The most telling first, at most three; none for a report that leaves no question. Commands are ready for a shell.
std::vector<NextStep> next_steps(const Report& report);

}  // namespace parity
