// report.md: for a reviewer with two minutes. Verdict, coverage, one line per op kind, plots, failures in full, then
// everything, folded.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/markup.hpp"
#include "report/plot.hpp"
#include "report/sink.hpp"
#include "report/summary.hpp"

namespace parity {
namespace {

constexpr size_t kFullFailures = 30,
                 kListedUndecided = 50;  // more than this nobody reads; the folded list has them all

std::string sign(Verdict v) {
  return v == Verdict::pass ? "✅" : v == Verdict::fail || v == Verdict::shape ? "❌" : "⚠️";
}

std::string mark(Verdict v) { return fmt::format("{} {}", sign(v), verdict_name(v)); }

std::string row(const std::vector<std::string>& cells) { return fmt::format("| {} |\n", fmt::join(cells, " | ")); }

std::string head(const Report& report) {
  const std::string name = report.reference.model.empty() ? report.candidate.model : report.reference.model;
  std::string out = fmt::format("# Parity report{}\n\n", name.empty() ? "" : fmt::format(": {}", markdown(name)));
  const Verdict v = overall(report);
  out += fmt::format("{} **{}**\n\n", sign(v), markdown(headline(report)));
  if (const OpResult* op = first_divergence(report)) {
    out += fmt::format("First divergence: **{}** ({}, {}{}), gate **{}**", markdown_code(row_name(*op)),
                       markdown(op->kind), markdown(op->dtype),
                       op->candidate_path.empty() || op->candidate_path == op->path
                           ? ""
                           : fmt::format(", candidate {}", markdown_code(op->candidate_path)),
                       markdown(gate_name(op->gate)));
    out += op->diagnosis.empty() ? ".\n\n" : fmt::format(": {}\n\n", markdown(op->diagnosis));
  }
  return out;
}

std::string facts(const Report& report) {
  std::string out = fmt::format("- {}\n", markdown(totals_text(report)));
  for (const std::string& line : coverage_lines(report)) out += fmt::format("- Coverage: {}\n", markdown(line));
  for (const std::string& line : method_lines(report)) out += fmt::format("- {}\n", markdown(line));
  for (const auto& [reference, c] : report.coverage) {
    const auto list = [&](const char* what, const std::vector<std::string>& paths) {
      if (paths.empty()) return;
      std::vector<std::string> shown;
      for (size_t i = 0; i < std::min<size_t>(paths.size(), 12); ++i) shown.push_back(markdown_code(paths[i]));
      out += fmt::format("  - {}: {}{}\n", what, fmt::join(shown, ", "),
                         paths.size() > 12 ? fmt::format(" and {} more", paths.size() - 12) : "");
    };
    list("without counterpart", c.uncovered_paths);
    list("candidate only", c.unmatched_candidates);
  }
  for (const std::string& warning : report.warnings) out += fmt::format("- ⚠️ {}\n", markdown(warning));
  return out + "\n";
}

std::string kinds(const Report& report) {
  if (report.ops.empty()) return "";
  std::string out = "## By kind of op\n\n";
  out += row({"kind", "dtype", "ops", "verdict", "fp64 logic, worst", "rel L2, worst", "bitwise equal, least",
              "ULP, worst", "free-running rel L2, worst"});
  out += row({"---", "---", "--:", "---", "--:", "--:", "--:", "--:", "--:"});
  for (const KindRow& k : by_kind(report))
    out += row({markdown(k.kind), markdown(k.dtype), std::to_string(k.count),
                fmt::format("{} {}", sign(worst(k.verdicts)), verdicts_text(k.verdicts)), number(k.worst_logic),
                number(k.worst_rel_l2), share(k.min_equal_share), number(k.max_ulp), number(k.worst_free)});
  return out +
         "\n*fp64 logic*, *rel L2*, *equal* and *ULP*: the op on the reference's own inputs (teacher-forced), so only "
         "its own error. *Free-running*: on "
         "what the candidate computed before, so with all inherited error.\n\n";
}

std::string plots(const Plots& drawn) {
  std::string out = "## Error along the model\n\n";
  for (const Plot& plot : drawn.drawn)
    out += fmt::format("**{}**\n\n![Error of every op in execution order, {}]({})\n\n", markdown(plot.title),
                       markdown(plot.title), plot.file);
  if (!drawn.problem.empty()) out += fmt::format("⚠️ Plots are missing: {}.\n\n", markdown(drawn.problem));
  if (!drawn.exact.empty())
    out += fmt::format("Not drawn, because no op differs at all, forced or free: {}.\n\n",
                       markdown(fmt::format("{}", fmt::join(drawn.exact, "; "))));
  if (drawn.drawn.empty() && drawn.exact.empty() && drawn.problem.empty())
    out += "Nothing was measured that could be drawn.\n\n";
  return out;
}

std::string measured(const OpResult& op) {
  if (!op.forced) return "not measured teacher-forced";
  const Stats& s = *op.forced;
  std::string out = fmt::format("rel L2 {}, max |d| {}, p99 |d| {}, bitwise equal {}, max ULP {}", number(s.rel_l2),
                                number(s.max_abs), number(s.p99_abs), share(s.bitwise_equal_share), number(s.max_ulp));
  if (op.oracle) out += fmt::format(", R {}, ρ {}", number(op.oracle->ratio), number(op.oracle->correlation));
  if (!s.worst_index.empty())
    out += fmt::format("; worst at [{}]: reference {:.9g}, candidate {:.9g}", fmt::join(s.worst_index, ", "),
                       s.worst_reference, s.worst_candidate);
  if (s.special_mismatch > 0)
    out += fmt::format("; {} elements differ in being finite ({} non-finite in the reference, {} in the candidate)",
                       s.special_mismatch, s.nan_reference, s.nan_candidate);
  return out;
}

std::string failure(const OpResult& op) {
  std::string out = fmt::format("### {} {}, gate {}\n\n", mark(op.verdict), markdown_code(row_name(op)),
                                op.gate == Gate::none ? "none" : markdown(gate_name(op.gate)));
  if (!op.diagnosis.empty()) out += fmt::format("{}\n\n", markdown(op.diagnosis));
  out += fmt::format("- {}, {}, {}", markdown(op.kind), markdown(op.dtype), shape_text(op.shape));
  if (!op.candidate_path.empty() && op.candidate_path != op.path)
    out += fmt::format(", candidate {}", markdown_code(op.candidate_path));
  out += fmt::format("\n- measured: {}\n", markdown(measured(op)));
  for (const std::string& line : limit_lines(op)) out += fmt::format("- limit: {}\n", markdown(line));
  if (!op.rerun.empty()) out += fmt::format("- again: {}\n", markdown_code(op.rerun));
  return out + "\n";
}

std::string failures_part(const Report& report) {
  const auto bad = failures(report), open = undecided(report);
  std::string out;
  if (!bad.empty()) out += "## Failures\n\n";
  for (size_t i = 0; i < std::min(bad.size(), kFullFailures); ++i) out += failure(*bad[i]);
  if (bad.size() > kFullFailures)
    out += fmt::format("… and {} more: see the list of all ops below.\n\n", bad.size() - kFullFailures);
  if (!open.empty()) out += "## Not decided\n\n";
  for (size_t i = 0; i < std::min(open.size(), kListedUndecided); ++i)
    out += fmt::format("- {} {} ({}, {}): {}\n", mark(open[i]->verdict), markdown_code(row_name(*open[i])),
                       markdown(open[i]->kind), markdown(open[i]->dtype), markdown(open[i]->diagnosis));
  if (open.size() > kListedUndecided)
    out += fmt::format("- … and {} more: see the list of all ops below.\n", open.size() - kListedUndecided);
  return open.empty() ? out : out + "\n";
}

std::string op_row(const OpResult& op) {
  const Stats none, &s = op.forced ? *op.forced : none;
  const OracleStats o = op.oracle.value_or(OracleStats{});
  return row({std::to_string(op.index), markdown_code(row_name(op)), markdown(op.kind), markdown(op.dtype),
              mark(op.verdict), number(op.logic.rel_l2), number(s.rel_l2), number(s.normalized_max),
              share(s.bitwise_equal_share), number(s.max_ulp), number(o.ratio), number(o.correlation),
              number(op.free ? op.free->rel_l2 : std::nullopt), number(op.predicted_free), number(op.amplification)});
}

std::string repro(const Report& report) {
  if (report.repro_file.empty()) return "";
  return fmt::format(
      "## The first divergence alone\n\n"
      "[{0}]({0}) holds that op's inputs, weights and program, and both results; "
      "`parity-check replay {0}` runs it again. A test for the port:\n\n"
      "<details>\n<summary>C++ (doctest)</summary>\n\n```cpp\n{1}```\n\n</details>\n\n",
      report.repro_file, report.repro_test);
}

std::string everything(const Report& report) {
  if (report.ops.empty()) return "";
  std::string out =
      fmt::format("<details>\n<summary>All {} comparisons, in execution order</summary>\n\n", report.ops.size());
  out += row({"#", "op", "kind", "dtype", "verdict", "fp64 logic", "rel L2", "max / mean", "equal", "ULP", "R", "ρ",
              "free rel L2", "predicted", "amplification"});
  out += row({"--:", "---", "---", "---", "---", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:"});
  for (const OpResult& op : report.ops) out += op_row(op);
  return out +
         "\n*max / mean*: largest difference over the reference's mean magnitude. *R*, *ρ*: the candidate's error over "
         "the reference's, both against fp64, and "
         "how alike the two are. *Predicted*: the free-running error that inputs and own error "
         "explain.\n\n</details>\n\n";
}

std::string side(const char* what, const Side& s) {
  std::string out = fmt::format("- {}:", what);
  if (!s.model.empty()) out += fmt::format(" {}", markdown(s.model));
  if (!s.producer.empty()) out += fmt::format(", {}", markdown(s.producer));
  if (!s.path.empty()) out += fmt::format(", {}", markdown_code(s.path));
  if (!s.sha256.empty()) out += fmt::format(", sha256 {}", markdown_code(s.sha256));
  return out + "\n";
}

std::string provenance(const Report& report) {
  std::string out = "## Where these numbers come from\n\n";
  out += side("reference", report.reference) + side("candidate", report.candidate);
  for (const ReferenceRow& reference : reference_rows(report))
    out += fmt::format("  - {}: {}{}\n", markdown_code(reference.name), markdown(reference.model),
                       reference.code.empty() ? "" : fmt::format(", {}", markdown(reference.code)));
  std::vector<std::string> machine;
  if (report.machine.is_object())
    for (const auto& [key, value] : report.machine.items())
      machine.push_back(
          fmt::format("{} {}", markdown(key), markdown(value.is_string() ? value.get<std::string>() : value.dump())));
  if (!machine.empty()) out += fmt::format("- machine: {}\n", fmt::join(machine, "; "));
  if (!report.command.empty()) out += fmt::format("- command: {}\n", markdown_code(report.command));
  return out + fmt::format("- {}{:.3g} s\n", report.date.empty() ? "" : fmt::format("{}, ", markdown(report.date)),
                           report.seconds);
}

}  // namespace

void write_markdown(const Report& report, const std::filesystem::path& folder) {
  const Plots drawn = draw_plots(report, folder);
  std::string text = head(report);
  for (const std::string& part : {facts(report), kinds(report), plots(drawn), failures_part(report), repro(report),
                                  everything(report), provenance(report)})
    text += part;
  write_file(folder / "report.md", text);
}

}  // namespace parity
