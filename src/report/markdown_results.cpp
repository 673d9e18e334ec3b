// Results in report.md: recording × dtype, causes, kinds of ops, plots.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/causes.hpp"
#include "report/discriminator.hpp"
#include "report/limit_use.hpp"
#include "report/markdown_parts.hpp"
#include "report/markup.hpp"
#include "report/matrix.hpp"
#include "report/summary.hpp"

namespace parity {
namespace {

// What fits into 60 kB and two minutes; recordings/ holds all of it.
constexpr size_t kCauses = 15, kNamed = 6, kCells = 120, kLongest = 1200;
constexpr size_t kPlots = 3;

std::string page_link(const std::vector<RecordingPage>& pages, const std::string& name) {
  for (const RecordingPage& page : pages)
    if (page.name == name) return fmt::format("[{}]({})", markdown(name), page.file);
  return markdown(name);
}

std::string cell_row(const Cell& c, const std::vector<RecordingPage>& pages) {
  std::string worst_op = "–";
  if (c.worst != nullptr && (c.of_limit.value_or(0) > 0 || is_failure(*c.worst)))
    worst_op = fmt::format("{} {}", markdown_code(path_name(*c.worst)), of_limit_text(c));
  else if (c.of_limit)
    worst_op = "exact";
  return table_row({page_link(pages, c.recording), markdown(c.dtype), std::to_string(c.count),
                    fmt::format("{} {}", verdict_sign(worst(c.verdicts)), verdicts_text(c.verdicts)), worst_op,
                    share(c.equal_share), number(c.free_output)});
}

std::string rows_named(const Cause& cause) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(cause.rows.size(), kNamed); ++i)
    names.push_back(fmt::format("{} ({})", markdown_code(row_name(*cause.rows[i])), markdown(cause.rows[i]->dtype)));
  std::string out = fmt::format("{}", fmt::join(names, ", "));
  return cause.rows.size() > kNamed ? fmt::format("{} and {} more", out, cause.rows.size() - kNamed) : out;
}

std::string cause_part(const Cause& cause, const std::vector<RecordingPage>& pages) {
  const OpResult& first = *cause.rows.front();
  std::string out = fmt::format("### {}: {}\n\n", verdict_mark(cause.verdict), markdown(cause_title(cause)));
  if (!first.diagnosis.empty()) out += fmt::format("{}\n\n", markdown(shortened_text(first.diagnosis, kLongest)));
  out += fmt::format("- {}: {}\n", cause.rows.size() == 1 ? "row" : "rows", rows_named(cause));
  if (!first.candidate_path.empty() && first.candidate_path != first.path)
    out += fmt::format("- candidate: {}\n", markdown_code(first.candidate_path));
  if (const std::string lines = source_text(first); !lines.empty()) out += fmt::format("- {}\n", markdown(lines));
  for (const std::string& line : broken_limit_lines(first)) out += fmt::format("- limit broken: {}\n", markdown(line));
  for (const RecordingPage& page : pages)
    if (page.reference == first.reference)
      out += fmt::format("- every number: [{}]({}#rows-that-are-not-green)\n", markdown(page.name), page.file);
  return out + "\n";
}

}  // namespace

std::string markdown_matrix(const Report& report, const std::vector<RecordingPage>& pages) {
  if (report.ops.empty()) return "";
  std::vector<Cell> cells = matrix(report);
  if (cells.size() > kCells) cells = matrix_by_recording(report);
  std::string out = "## Results\n\n";
  out += table_row(
      {"recording", "dtype", "ops", "verdict", "worst op", "elements bitwise equal", "output, free-running rel L2"});
  out += table_row({"---", "---", "--:", "---", "---", "--:", "--:"});
  for (size_t i = 0; i < std::min(cells.size(), kCells); ++i) out += cell_row(cells[i], pages);
  out += "\n*Worst op*: the one that uses most of its limit; *equal*: on the reference's own inputs.\n\n";
  if (cells.size() <= kCells) return out;
  out += fmt::format("… and {} more: ", cells.size() - kCells);
  for (size_t i = kCells; i < cells.size(); ++i) out += page_link(pages, cells[i].recording) + " ";
  return out + "\n\n";
}

std::string markdown_causes(const Report& report, const std::vector<RecordingPage>& pages) {
  const std::vector<Cause> all = causes(report);
  if (all.empty()) return "";
  std::string out = "## Sources of difference\n\n";
  size_t rows = 0;
  for (const Cause& cause : all) rows += cause.rows.size();
  out += fmt::format("{} {} not green, by {} {}.", rows, rows == 1 ? "row is" : "rows are", all.size(),
                     all.size() == 1 ? "cause" : "causes");
  if (const auto common = discriminate(report)) out += fmt::format(" In common: {}.", markdown(common->sentence()));
  out += "\n\n";
  for (size_t i = 0; i < std::min(all.size(), kCauses); ++i) out += cause_part(all[i], pages);
  if (all.size() > kCauses)
    out += fmt::format("… and {} more causes: the files of the recordings list all rows.\n\n", all.size() - kCauses);
  return out;
}

std::string markdown_kinds(const std::vector<const OpResult*>& rows) {
  std::string out = table_row({"kind", "dtype", "ops", "verdict", "fp64 logic, worst", "rel L2, worst",
                               "bitwise equal, least", "ULP, worst", "free-running rel L2, worst"});
  out += table_row({"---", "---", "--:", "---", "--:", "--:", "--:", "--:", "--:"});
  for (const KindRow& k : by_kind(rows))
    out += table_row({markdown(k.kind), markdown(k.dtype), std::to_string(k.count),
                      fmt::format("{} {}", verdict_sign(worst(k.verdicts)), verdicts_text(k.verdicts)),
                      number(k.worst_logic), number(k.worst_rel_l2), share(k.min_equal_share), number(k.max_ulp),
                      number(k.worst_free)});
  return out +
         "\n*fp64 logic*, *rel L2*, *equal* and *ULP*: the op on the reference's own inputs (teacher-forced), so only "
         "its own error. *Free-running*: on what the candidate computed before, so with all inherited error.\n\n";
}

std::string markdown_plots(const Report& report, const Plots& drawn) {
  if (report.ops.empty()) return "";
  std::string out = "## Error along the model\n\n";
  // Of the worst cells; the others stand in the files of their recordings.
  std::vector<Cell> cells = matrix(report);
  std::stable_sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) {
    const auto key = [](const Cell& c) {
      return std::pair(c.worst != nullptr && is_failure(*c.worst), c.of_limit.value_or(-1));
    };
    return key(a) > key(b);
  });
  size_t shown = 0;
  for (const Cell& cell : cells)
    for (const Plot& plot : drawn.drawn)
      if (shown < kPlots && recording_name(report, plot.reference) == cell.recording && plot.dtype == cell.dtype) {
        out += fmt::format("**{}**\n\n![Error of every op in execution order, {}]({})\n\n", markdown(plot.title),
                           markdown(plot.title), plot.file);
        ++shown;
      }
  if (drawn.drawn.size() > shown)
    out += fmt::format("{} more: in the files of the recordings.\n\n", drawn.drawn.size() - shown);
  if (!drawn.problem.empty()) out += fmt::format("⚠️ Plots are missing: {}.\n\n", markdown(drawn.problem));
  if (!drawn.exact.empty())
    out += fmt::format("Not drawn, because no op differs at all, forced or free: {}.\n\n",
                       drawn.exact.size() > 6 ? fmt::format("{} runs", drawn.exact.size())
                                              : markdown(fmt::format("{}", fmt::join(drawn.exact, "; "))));
  if (drawn.drawn.empty() && drawn.exact.empty() && drawn.problem.empty())
    out += "Nothing was measured that could be drawn.\n\n";
  return out;
}

}  // namespace parity
