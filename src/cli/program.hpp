// What `parity-check` and `parity-check-all` share: from arguments to the exit status.
#pragma once
#include <string>
#include <vector>

#include "cli/command.hpp"

namespace parity::cli {

/// As a report states it.
std::string command_line(const std::vector<std::string>& arguments);

/// Name, purpose, version and exit statuses, before the commands are added.
void describe(CLI::App& app);

/// Parses, then runs the chosen command. Every error is one line on standard error and exit status 2.
int run_program(CLI::App& app, const Action& action, std::vector<std::string> arguments);

/// Settings of this process that LibTorch and OpenMP read when they are loaded; those that the user has set stay.
void set_environment_of_libtorch();

/// Ends the process with this exit status; with 2 and a line when standard output could not take everything (a full
/// disk). No static object is destroyed: LibTorch takes its operators back one by one, 0.11 s of the 0.40 that a short
/// command took.
[[noreturn]] void leave(int status);

}  // namespace parity::cli
