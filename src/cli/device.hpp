// --device: where the recorded program's ops run.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace parity::cli {

/// Adds --device cpu|cuda|cuda:N. A command that has it holds a ReplayDevice(usable_device(device)) while it works
/// (trace/device.hpp).
void add_device(CLI::App& command, std::string& device);

}  // namespace parity::cli
