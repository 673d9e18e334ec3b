// Where results go. A sink computes nothing: it shows what measuring and judging have found.
#pragma once
#include <filesystem>
#include <functional>
#include <string>

#include "core/result.hpp"

namespace parity {

/// Every writer takes a finished (or, after an interruption, partial but consistent) report. Files are written to a
/// temporary name and renamed. All throw Error when the file cannot be written.
nlohmann::json to_json(const Report& report);  // parity-report/1
void write_json(const Report& report, const std::filesystem::path& file);
void write_junit(const Report& report, const std::filesystem::path& file);  // one test case per op and gate
/// report.md with its SVG plots beside it in `folder` (log-scale error per layer, forced and free, per dtype) and a
/// file for each recording in `folder`/recordings. Without gnuplot: tables only, and the report says so.
void write_markdown(const Report& report, const std::filesystem::path& folder);
/// The whole report as one page for a browser, which needs nothing but itself.
void write_html(const Report& report, const std::filesystem::path& file);
/// The screen on a terminal: causes, recordings, kinds, what to run next. Colour only when `colour`.
std::string console_summary(const Report& report, bool colour);

/// `text` to `file` through a temporary name in the same folder. Throws Error.
void write_file(const std::filesystem::path& file, const std::string& text);

}  // namespace parity
