// How the numbers of report.md came about: coverage, method, warnings; provenance; which file holds what.
#include <fmt/format.h>

#include <algorithm>

#include "report/condensed.hpp"
#include "report/markdown_parts.hpp"
#include "report/markup.hpp"

namespace parity {
namespace {

constexpr size_t kWarnings = 12, kLongestWarning = 600;

}  // namespace

std::string provenance_line(const char* what, const Side& s) {
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  if (!s.model.empty()) add(markdown(s.model));
  if (!s.producer.empty()) add(markdown(s.producer));
  if (!s.path.empty()) add(markdown_code(s.path));
  if (!s.sha256.empty()) add("sha256 " + markdown_code(s.sha256));
  return out.empty() ? "" : fmt::format("- {}: {}\n", what, out);
}

std::string markdown_method(const Report& report, const std::vector<RecordingPage>& pages) {
  std::string out = "## Method\n\n";
  for (const std::string& line : condensed_lines(report)) out += fmt::format("- {}\n", markdown(line));
  const std::vector<std::string> warnings = condensed_warnings(report);
  for (size_t i = 0; i < std::min(warnings.size(), kWarnings); ++i)
    out += fmt::format("- ⚠️ {}\n", markdown(shortened_text(warnings[i], kLongestWarning)));
  if (warnings.size() > kWarnings)
    out += fmt::format("- ⚠️ … and {} more warnings, in `report.json`\n", warnings.size() - kWarnings);
  out += provenance_line("reference", report.reference) + provenance_line("candidate", report.candidate);
  if (!report.command.empty()) out += fmt::format("- command: {}\n", markdown_code(report.command));
  out += fmt::format("- {}{:.3g} s\n", report.date.empty() ? "" : fmt::format("{}, ", markdown(report.date)),
                     report.seconds);
  if (!pages.empty())
    out += fmt::format("\nAll {} comparisons, with every limit, and what was not compared: ", report.ops.size());
  for (size_t i = 0; i < pages.size(); ++i)
    out += fmt::format("{}[{}]({})", i == 0 ? "" : ", ", markdown(pages[i].name), pages[i].file);
  return out + (pages.empty() ? "" : ".\n");
}

}  // namespace parity
