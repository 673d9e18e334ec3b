// The table of formats that a report is exported to, for programs that people use already: a new one is a writer and
// one row here.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "trace/program.hpp"

namespace parity {

struct ExportInput {
  const Report& report;
  /// The recordings' programs, null where they are not at hand: a graph is without edges then.
  const Program *reference = nullptr, *candidate = nullptr;
};

struct ExportFormat {
  std::string_view name;  // as --to and --export call it
  std::string_view what;  // one line for help texts
  bool graph;             // takes the recordings
  /// Writes to `place`, a file or a folder; the files that were written. Throws Error.
  std::vector<std::filesystem::path> (*write)(const ExportInput& input, const std::filesystem::path& place);
};

std::span<const ExportFormat> export_formats();

/// Throws Error for an unknown name, listing those there are.
const ExportFormat& export_format(std::string_view name);

/// RFC 4180: one row an op, a head line; a number that does not exist is an empty field.
std::string report_csv(const Report& report);
/// Chrome's trace events: one slice an op, one track a side.
std::string report_trace(const Report& report);

}  // namespace parity
