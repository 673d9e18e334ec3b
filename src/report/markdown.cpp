// report.md: for a reviewer with two minutes. The order is that of accuracy reports: verdict, environment, results,
// sources of difference, statistics, plots, frames with ratings, what has changed since a baseline, method.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "report/logits.hpp"
#include "report/markdown_parts.hpp"
#include "report/markup.hpp"
#include "report/matrix.hpp"
#include "report/since_baseline.hpp"
#include "report/sink.hpp"
#include "report/video.hpp"
#include "report/whole_program.hpp"

namespace parity {
namespace {

/// A file's name without anything that ends a link or leaves the folder.
std::string file_stem(const std::string& name) {
  std::string out;
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' ? c : '-';
  while (!out.empty() && (out.front() == '.' || out.front() == '-')) out.erase(0, 1);
  return out.empty() ? "recording" : out.substr(0, 100);
}

std::string repro(const Report& report) {
  if (report.repro_file.empty()) return "";
  return fmt::format(
      "### The first divergence alone\n\n"
      "[{0}]({0}) holds that op's inputs, weights and program, and both results; "
      "`parity-check replay {0}` runs it again. A test for the port:\n\n"
      "<details>\n<summary>C++ (doctest)</summary>\n\n```cpp\n{1}```\n\n</details>\n\n",
      report.repro_file, report.repro_test);
}

std::string statistics(const Report& report) {
  std::vector<const OpResult*> rows;
  for (const OpResult& op : report.ops) rows.push_back(&op);
  return rows.empty() ? "" : "## Statistics\n\n" + markdown_kinds(rows);
}

std::string frames(const Report& report) {
  return report.video ? "## Video\n\n" + video_markdown(*report.video, 3) : "";
}

}  // namespace

std::string verdict_sign(Verdict v) {
  return v == Verdict::pass ? "✅" : v == Verdict::fail || v == Verdict::shape ? "❌" : "⚠️";
}

std::string verdict_mark(Verdict v) { return fmt::format("{} {}", verdict_sign(v), verdict_name(v)); }

std::string table_row(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::vector<RecordingPage> recording_pages(const Report& report) {
  std::vector<RecordingPage> out;
  std::set<std::string> taken;
  for (const OpResult& op : report.ops) {
    auto found = std::find_if(out.begin(), out.end(), [&](const auto& page) { return page.reference == op.reference; });
    if (found == out.end()) {
      const std::string name = recording_name(report, op.reference);
      std::string stem = file_stem(name);
      for (int n = 2; !taken.insert(stem).second; ++n) stem = fmt::format("{}_{}", file_stem(name), n);
      found = out.insert(out.end(), {name, op.reference, fmt::format("recordings/{}.md", stem), {}});
    }
    found->rows.push_back(&op);
  }
  return out;
}

void write_markdown(const Report& report, const std::filesystem::path& folder) {
  const Plots drawn = draw_plots(report, folder);
  const std::vector<RecordingPage> pages = recording_pages(report);
  for (const RecordingPage& page : pages) write_recording(report, page, drawn, folder);
  std::string text;
  for (const std::string& part :
       {markdown_head(report), markdown_environment(report), markdown_matrix(report, pages),
        markdown_causes(report, pages), markdown_whole_program(report), markdown_logits(report), repro(report),
        statistics(report), markdown_plots(report, drawn), frames(report), markdown_since_baseline(report),
        markdown_method(report, pages)})
    text += part;
  write_file(folder / "report.md", text);
}

}  // namespace parity
