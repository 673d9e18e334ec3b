#include "report/since_baseline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/markdown_parts.hpp"
#include "report/markup.hpp"

namespace parity {
namespace {

constexpr size_t kOnScreen = 6, kInSection = 40;  // report.json has them all

std::string change_of(const BaselineChange& row) {
  const std::string was = row.was.empty() ? "absent" : row.was, now = row.now.empty() ? "absent" : row.now;
  return was == now ? now : fmt::format("{} -> {}", was, now);
}

}  // namespace

std::vector<std::string> since_baseline_lines(const SinceBaseline& since) {
  std::vector<std::string> out{fmt::format("Since the baseline {}: {}", since.file, since.headline)};
  for (size_t i = 0; i < std::min(since.rows.size(), kOnScreen); ++i) {
    const BaselineChange& row = since.rows[i];
    std::string line =
        fmt::format("  {}  {} ({}, {})  {}", pad_right(row.change, 9), row.path, row.kind, row.dtype, change_of(row));
    if (const std::string& why = row.number.empty() ? row.note : row.number; !why.empty()) line += "; " + why;
    out.push_back(std::move(line));
  }
  if (since.rows.size() > kOnScreen)
    out.push_back(fmt::format("  … and {} more changes: the report files list them", since.rows.size() - kOnScreen));
  return out;
}

std::string markdown_since_baseline(const Report& report) {
  if (!report.since_baseline) return "";
  const SinceBaseline& since = *report.since_baseline;
  std::string out = fmt::format("## Since the baseline\n\n{} **{}**\n\n- baseline: {}\n", verdict_sign(since.verdict),
                                markdown(since.headline), markdown_code(since.file));
  for (const std::string& line : since.about) out += fmt::format("- {}\n", markdown(line));
  for (const std::string& note : since.notes) out += fmt::format("- note: {}\n", markdown(note));
  if (!since.totals.empty()) out += fmt::format("- {}\n", markdown(since.totals));
  out += "\n";
  if (since.rows.empty()) return out;
  out += table_row({"change", "op", "kind", "dtype", "verdict", "number", "note"}) +
         table_row({"---", "---", "---", "---", "---", "---", "---"});
  for (size_t i = 0; i < std::min(since.rows.size(), kInSection); ++i) {
    const BaselineChange& row = since.rows[i];
    out += table_row({row.change, markdown_code(row.path), markdown(row.kind), markdown(row.dtype),
                      markdown(change_of(row)), markdown(row.number), markdown(shortened_text(row.note, 200))});
  }
  out += "\n";
  if (since.rows.size() > kInSection)
    out += fmt::format("… and {} more, in `report.json`.\n\n", since.rows.size() - kInSection);
  return out;
}

}  // namespace parity
