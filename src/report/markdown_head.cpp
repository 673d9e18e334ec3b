// The first screen of report.md, and the environment.
#include <fmt/format.h>

#include "report/condensed.hpp"
#include "report/environment.hpp"
#include "report/markdown_parts.hpp"
#include "report/markup.hpp"
#include "report/matrix.hpp"
#include "report/next.hpp"
#include "report/summary.hpp"

namespace parity {
namespace {

std::string first_divergence_text(const Report& report) {
  const OpResult* op = first_divergence(report);
  if (op == nullptr) return "";
  const bool elsewhere = !op->candidate_path.empty() && op->candidate_path != op->path;
  std::string out = fmt::format("First divergence: **{}** ({}, {}{}), gate **{}**", markdown_code(row_name(*op)),
                                markdown(op->kind), markdown(op->dtype),
                                elsewhere ? fmt::format(", candidate {}", markdown_code(op->candidate_path)) : "",
                                markdown(gate_name(op->gate)));
  return out + (op->diagnosis.empty() ? ".\n\n" : fmt::format(": {}\n\n", markdown(op->diagnosis)));
}

std::string side_line(const char* what, const std::string& text, const Side& side, const std::string& machine) {
  std::string out = text.empty() ? "" : markdown(text);
  if (!side.path.empty()) out += fmt::format("{}{}", out.empty() ? "" : ", ", markdown_code(side.path));
  if (!machine.empty()) out += fmt::format("{}on {}", out.empty() ? "" : "; ", markdown(machine));
  return out.empty() ? "" : fmt::format("- **{}**: {}\n", what, out);
}

std::string worst_line(const Report& report) {
  const std::vector<Cell> cells = matrix(report);
  const Cell* worst = worst_cell(cells);
  if (worst == nullptr || worst->worst == nullptr) return "";
  const OpResult& op = *worst->worst;
  const std::string used = of_limit_text(*worst);
  if (used == "exact" && !is_failure(op)) return "- **Worst op**: none, nothing of any limit is used\n";
  return fmt::format("- **Worst op**: {} ({}, {}){}{}\n", markdown_code(row_name(op)), markdown(op.kind),
                     markdown(op.dtype), used.empty() ? "" : ": ", used);
}

/// The one column in which something is known; empty when there are more.
std::optional<size_t> only_known(const EnvironmentRow& row) {
  std::optional<size_t> found;
  for (size_t i = 0; i < row.values.size(); ++i)
    if (!row.values[i].empty()) {
      if (found) return std::nullopt;
      found = i;
    }
  return found;
}

std::string next_lines(const Report& report) {
  std::string out;
  for (const NextStep& step : next_steps(report))
    out += fmt::format("- **Next**: {} ({})\n", markdown_code(step.command), markdown(step.why));
  return out;
}

}  // namespace

std::string markdown_head(const Report& report) {
  const std::string name = report.reference.model.empty() ? report.candidate.model : report.reference.model;
  std::string out = fmt::format("# Parity report{}\n\n", name.empty() ? "" : fmt::format(": {}", markdown(name)));
  out += fmt::format("{} **{}**\n\n", verdict_sign(overall(report)), markdown(headline(report)));
  out += first_divergence_text(report);
  const Environment machines = environment(report);
  out += side_line("Reference", reference_text(report), report.reference, machine_text(machines, 0));
  out += side_line("Candidate", candidate_text(report), report.candidate, machine_text(machines, 1));
  if (machines.columns.size() > 2) out += side_line("Judged", "", Side(), machine_text(machines, 2));
  if (const std::string differs = differing_text(machines); !differs.empty())
    out += fmt::format("- ⚠️ **The machines differ**: {}\n", markdown(differs));
  out += worst_line(report);
  if (!report.ops.empty()) out += fmt::format("- **Verdicts**: {}\n", markdown(occurring_text(report)));
  out += next_lines(report);
  return out + "\n";
}

std::string markdown_environment(const Report& report) {
  const Environment machines = environment(report);
  if (machines.rows.empty()) return "";
  std::string out = "## Environment\n\n";
  std::vector<std::string> cells{""}, rule{"---"}, alone(machines.columns.size());
  for (const std::string& column : machines.columns) cells.push_back(column), rule.emplace_back("---");
  const std::string heading = table_row(cells) + table_row(rule);
  std::string table;
  for (const EnvironmentRow& row : machines.rows) {
    if (const std::optional<size_t> column = only_known(row)) {
      alone[*column] += fmt::format("{}{} {}", alone[*column].empty() ? "" : "; ", row.what, row.values[*column]);
      continue;
    }
    cells = {fmt::format("{}{}", row.differs ? "⚠️ " : "", markdown(row.what))};
    for (const std::string& value : row.values) cells.push_back(value.empty() ? "" : markdown(value));
    table += table_row(cells);
  }
  if (!table.empty()) out += heading + table + "\n⚠️ marks what differs. ";
  for (size_t i = 0; i < alone.size(); ++i)
    if (!alone[i].empty()) out += fmt::format("Known of the {} alone: {}. ", machines.columns[i], markdown(alone[i]));
  return out.substr(0, out.find_last_not_of(' ') + 1) + "\n\n";
}

}  // namespace parity
