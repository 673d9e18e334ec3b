// What `parity-check-all` does, in the process that it is called in.
#pragma once
#include <string>
#include <vector>

namespace parity::cli {

/// From arguments, without the program's name, to the exit status, with which the process ends.
[[noreturn]] void run_all_commands(std::vector<std::string> arguments);

}  // namespace parity::cli
