// The parts of report.md, one file each, and the files beside it. Private to src/report.
#pragma once
#include <string>
#include <vector>

#include "report/plot.hpp"

namespace parity {

/// One recording's own file.
struct RecordingPage {
  std::string name, reference;  // shown; as in the rows
  std::string file;             // "recordings/wan-t2v.bf16.md", from the report's folder
  std::vector<const OpResult*> rows;
};
std::vector<RecordingPage> recording_pages(const Report& report);

/// Verdict, first divergence, what was compared with what and where, the worst op: a screen.
std::string markdown_head(const Report& report);
/// Versions and settings of all machines, what differs marked.
std::string markdown_environment(const Report& report);
/// Recording × dtype.
std::string markdown_matrix(const Report& report, const std::vector<RecordingPage>& pages);
/// Rows that are not green, by cause, and what they have in common.
std::string markdown_causes(const Report& report, const std::vector<RecordingPage>& pages);
/// By kind of op and dtype; the console's table.
std::string markdown_kinds(const std::vector<const OpResult*>& rows);
/// Pictures of the worst recordings.
std::string markdown_plots(const Report& report, const Plots& drawn);
/// Coverage, method, warnings, command, files.
std::string markdown_method(const Report& report, const std::vector<RecordingPage>& pages);

/// Model, producer, file and its sha256, as a line of a list.
std::string provenance_line(const char* what, const Side& side);

/// Writes the file of a recording, and further ones where it would grow too large for a reader's browser.
void write_recording(const Report& report, const RecordingPage& page, const Plots& drawn,
                     const std::filesystem::path& folder);

/// ✅, ❌ or ⚠️; that with the verdict's name.
std::string verdict_sign(Verdict verdict);
std::string verdict_mark(Verdict verdict);
/// A line of a table.
std::string table_row(const std::vector<std::string>& cells);

}  // namespace parity
