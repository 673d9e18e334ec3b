#include "report/sinks.hpp"

#include <array>

#include "report/sink.hpp"

namespace parity {
namespace {

namespace fs = std::filesystem;

constexpr std::array kSinks{
    SinkEntry{
        "report.json", "parity-report/1, the source of all others", true,
        [](const Report& report, const fs::path& folder, std::string_view file) { write_json(report, folder / file); }},
    SinkEntry{"junit.xml", "one test case per op and gate, for CI", false,
              [](const Report& report, const fs::path& folder, std::string_view file) {
                write_junit(report, folder / file);
              }},
    SinkEntry{"report.md", "for people, with its plots as SVG beside it", false,
              [](const Report& report, const fs::path& folder, std::string_view) { write_markdown(report, folder); }},
    SinkEntry{
        "report.html", "one page for a browser: chart, table, every op", false,
        [](const Report& report, const fs::path& folder, std::string_view file) { write_html(report, folder / file); }},
};

}  // namespace

std::span<const SinkEntry> report_sinks() { return kSinks; }

void write_reports(const Report& report, const fs::path& folder, bool finished) {
  fs::create_directories(folder);
  for (const SinkEntry& sink : kSinks)
    if (finished || sink.partial) sink.write(report, folder, sink.file);
}

}  // namespace parity
