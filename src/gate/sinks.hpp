// What the gate found, for people and for CI. Sinks compute nothing.
#pragma once
#include <filesystem>
#include <string>

#include "gate/compare.hpp"

namespace parity {

/// Verdict, what is worse in full, the rest in lists, counts. Colour only when `colour`.
std::string gate_console(const GateResult& result, bool colour);
/// Two reports side by side: a line a changed row, the furthest from its noise first.
std::string diff_console(const GateResult& result, bool colour);
/// A comment for a merge request, in GitHub's Markdown.
std::string gate_markdown(const GateResult& result);
/// parity-gate/1 (reports/parity-gate-1.schema.json). `command`, `report` and `baseline`: the files compared.
nlohmann::json gate_json(const GateResult& result, const std::string& report, const std::string& baseline);
/// One case a row.
void write_gate_junit(const GateResult& result, const std::filesystem::path& file);

/// The same as a section of a report.
SinceBaseline since_baseline(const GateResult& result, const std::string& file);

/// "WORSE: 1 of 412 comparisons …", the first line of all of them.
std::string gate_headline(const GateResult& result);
/// "worse 1 · undecided 0 · …"
std::string gate_totals(const GateResult& result);
/// "forced.rel_l2 0.0024, was 0.0011 (allowed 0.0018: 1.9 times the noise)", of the number that went furthest; "" when
/// none left its band.
std::string number_line(const RowChange& row);
/// "pass", or "pass -> fail".
std::string verdict_line(const RowChange& row);
/// Which baseline, which machine class; how the classes differ, and what to do when there is none for this one.
std::vector<std::string> baseline_lines(const GateResult& result);

}  // namespace parity
