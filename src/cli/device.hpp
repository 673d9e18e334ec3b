// --device: where the ops run.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace parity::cli {

/// Adds --device cpu|cuda.
void add_device(CLI::App& command, std::string& device);

/// Throws Error, in one line that says what to install, for a device on which this program cannot run the ops.
void check_device(const std::string& device);

}  // namespace parity::cli
