// The table of report files: a new one is a writer and one row here. Every command that writes a folder of reports
// writes them all.
#pragma once
#include <filesystem>
#include <span>
#include <string_view>

#include "core/result.hpp"

namespace parity {

struct SinkEntry {
  std::string_view file;  // in the report's folder
  std::string_view what;  // one line for help texts
  bool partial;           // also written while the run goes on, so that an interrupted one leaves a valid file
  void (*write)(const Report& report, const std::filesystem::path& folder, std::string_view file);
};

/// All of them, in the order in which they are written.
std::span<const SinkEntry> report_sinks();

/// Writes every report file into `folder`, which is made when it is missing; `finished` false: the partial ones alone.
/// Throws Error when a file cannot be written.
void write_reports(const Report& report, const std::filesystem::path& folder, bool finished = true);

}  // namespace parity
