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

}  // namespace parity::cli
