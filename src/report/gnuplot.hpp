// Running the program gnuplot.
#pragma once
#include <filesystem>
#include <functional>
#include <string>

namespace parity {

/// Runs gnuplot in `folder` on a script there; "" or what went wrong. No shell is involved.
std::string run_gnuplot(const std::filesystem::path& folder, const std::string& script);

/// Draws `file` in `folder`: `script` is given the name to write to, another one, so that the picture appears when it
/// is whole. "" or what went wrong.
std::string draw_gnuplot(const std::filesystem::path& folder, const std::string& file,
                         const std::function<std::string(const std::string& output)>& script);

}  // namespace parity
