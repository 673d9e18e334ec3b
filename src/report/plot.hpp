// Error plots: one SVG a reference and dtype run, drawn by the program gnuplot.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace parity {

struct Plot {
  std::string file;   // name in the folder
  std::string title;  // "bf16", "dump, bf16"
  std::string reference, dtype;
};

struct Plots {
  std::vector<Plot> drawn;
  std::vector<std::string> exact;  // titles of those without any error to draw
  std::string problem;             // why there are none or fewer: gnuplot is missing, or failed
};

/// Writes the SVG files of a report into `folder`. Never throws for gnuplot's sake: a report without plots is a report.
Plots draw_plots(const Report& report, const std::filesystem::path& folder);

/// gnuplot's commands for the rows of one plot; `terminal` is a "set terminal" line, `output` a file name free of
/// quotes. Public for the tests.
std::string plot_script(const std::vector<const OpResult*>& rows, const std::string& terminal,
                        const std::string& output);

}  // namespace parity
