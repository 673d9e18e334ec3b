// What the gate found, as a section of the report itself.
#include "gate/sinks.hpp"

namespace parity {

SinceBaseline since_baseline(const GateResult& result, const std::string& file) {
  SinceBaseline out;
  out.file = file;
  out.headline = gate_headline(result);
  if (result.compared) out.totals = gate_totals(result);
  const int exit = exit_status(result);
  out.verdict = exit == 0 ? Verdict::pass : exit == 1 ? Verdict::fail : Verdict::inconclusive;
  out.about = baseline_lines(result);
  out.notes = result.notes;
  for (const RowChange& row : result.rows) {
    if (row.change == Change::same) continue;
    BaselineChange change{change_name(row.change), name_of(row.key), row.kind, row.key.dtype, "", "", "", row.note};
    if (row.was) change.was = verdict_name(*row.was);
    if (row.now) change.now = verdict_name(*row.now);
    change.number = number_line(row);
    if (row.change == Change::paired) change.note = "with " + row.candidate_now + ", before with " + row.candidate_was;
    out.rows.push_back(std::move(change));
  }
  return out;
}

}  // namespace parity
