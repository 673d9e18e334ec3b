// parity-check gate: is a report worse than the baseline, beyond what rounding explains?
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.hpp"
#include "cli/print.hpp"
#include "core/error.hpp"
#include "gate/change.hpp"
#include "gate/history.hpp"
#include "gate/read_report.hpp"
#include "gate/sinks.hpp"
#include "report/sink.hpp"

namespace parity::cli {
namespace {

namespace fs = std::filesystem;

struct GateOptions {
  Common common;
  std::string report, baseline, accept, reason, until, junit, markdown, out = "reports/latest";
  std::vector<std::string> diff, history;
  bool update = false, tighten = false, across = false, accepts = false;
};

std::string today_text() { return now_text().substr(0, 10); }

void check_usage(const GateOptions& o) {
  const int modes = static_cast<int>(!o.diff.empty()) + static_cast<int>(!o.history.empty());
  const bool changes = o.update || o.accepts;
  if (modes > 1) throw Error("--diff and --history are two questions: ask one at a time");
  if (modes == 1 && (!o.report.empty() || !o.baseline.empty() || changes || o.tighten))
    throw Error("--diff and --history take their reports themselves, and no baseline");
  if (modes == 1) return;
  if (o.report.empty()) throw Error("name a report: parity-check gate REPORT.json --baseline FILE");
  if (o.baseline.empty()) throw Error("--baseline FILE is needed; --update --reason TEXT makes one from this report");
  if (o.update && o.accepts) throw Error("--update and --accept are two decisions: make one at a time");
  if (o.tighten && changes) throw Error("--tighten only proposes: it goes with no --update or --accept");
  if (!o.until.empty() && !o.accepts) throw Error("--until goes with --accept PATH");
  if (!o.reason.empty() && !changes) throw Error("--reason goes with --update or --accept PATH");
}

void write_files(const GateOptions& o, const GateResult& result, const std::string& report,
                 const std::string& baseline) {
  if (!o.common.json.empty()) write_result(o.common.json, gate_json(result, report, baseline));
  if (!o.junit.empty()) write_gate_junit(result, o.junit);
  if (!o.markdown.empty()) write_file(o.markdown, gate_markdown(result));
}

int run_diff(const GateOptions& o) {
  const Report before = read_report(o.diff[0]), after = read_report(o.diff[1]);
  const GateResult result = compare_with(frozen(before, o.diff[0], before.date), after, today_text());
  write_files(o, result, o.diff[1], o.diff[0]);
  if (!o.common.quiet) print("{}", Assembled{diff_console(result, want_colour())});
  return exit_status(result);
}

int run_history(const GateOptions& o) {
  std::vector<Moment> moments;
  for (const std::string& file : o.history) moments.push_back(moment_of(read_report(file), file));
  moments = history_of(std::move(moments));
  std::error_code problem;
  fs::create_directories(o.out, problem);
  if (problem) throw Error(fmt::format("{}: cannot be made a folder ({})", o.out, problem.message()));
  const std::string why = draw_history(moments, o.out);
  if (!o.common.json.empty()) write_result(o.common.json, history_json(moments));
  if (!why.empty()) throw Error(fmt::format("no history plot: {}", why));
  if (!o.common.quiet) {
    for (const Moment& m : moments)
      print("{:16}  {:12}  {} rows, {} failed, {} not decided  {}\n", m.date, verdict_name(m.verdict), m.rows, m.failed,
            m.open, m.file);
    print("{}\n", (fs::path(o.out) / "history.svg").string());
  }
  return 0;
}

/// What --update and --accept write; a line for each change.
std::string change_baseline(const GateOptions& o, Baseline& baseline, const Report& report) {
  std::string said;
  if (o.update) {
    update_baseline(baseline, report, o.reason, today_text());
    said = text_of("{}: {} rows frozen for {}\n", o.baseline, report.ops.size(), text_of_class(machine_class(report)));
  } else if (o.accepts) {
    for (const std::string& name : accept_worse(baseline, report, {o.accept, o.reason, o.until}, today_text()))
      said += text_of("{}: {} may be as bad as it is here until {}\n", o.baseline, name, o.until);
  }
  if (!said.empty()) write_baseline(baseline, o.baseline);
  return said;
}

GateResult held_against_baseline(const GateOptions& o, Baseline& baseline, const Report& report) {
  const MachineClass here = machine_class(report);
  if (const ClassBaseline* entry = find_class(baseline, here)) return compare_with(*entry, report, today_text());
  const ClassBaseline* nearest = nearest_class(baseline, here);
  if (!o.across || nearest == nullptr) return no_class(baseline, report);
  return compare_with(*nearest, report, today_text());
}

int run_gate(const GateOptions& o) {
  check_usage(o);
  if (!o.diff.empty()) return run_diff(o);
  if (!o.history.empty()) return run_history(o);
  const Report report = read_report(o.report);
  std::error_code problem;
  Baseline baseline;
  if (!o.update || fs::exists(o.baseline, problem)) baseline = read_baseline(o.baseline);
  const std::string said = change_baseline(o, baseline, report);
  const GateResult result = held_against_baseline(o, baseline, report);
  write_files(o, result, o.report, o.baseline);
  if (!o.common.quiet) {
    print("{}{}", Assembled{said}, Assembled{gate_console(result, want_colour())});
    if (o.tighten) {
      const auto proposals = tightening(result);
      print("\n{} could be tightened; --update --reason TEXT freezes this report:\n", proposals.size());
      for (const std::string& line : proposals) print("  {}\n", line);
    }
  }
  return exit_status(result);
}

void add_decisions(CLI::App& command, GateOptions& o) {
  command.add_flag("--update", o.update, "Freeze this report as the baseline of its machine class; needs --reason");
  command
      .add_option("--accept", o.accept,
                  "Let the rows of this path be as bad as they are here; needs --reason and --until")
      ->type_name("PATH")
      ->each([&o](const std::string&) { o.accepts = true; });
  command.add_option("--reason", o.reason, "Why; kept in the baseline")->type_name("TEXT");
  command.add_option("--until", o.until, "The last day of an acceptance, such as 2026-12-31")->type_name("DATE");
  command.add_flag("--tighten", o.tighten, "List what is better than the baseline; changes nothing");
  command.add_flag("--across-classes", o.across,
                   "Without an entry for this machine class: compare with the nearest one, and say so");
}

void add_outputs(CLI::App& command, GateOptions& o) {
  command.add_option("--out", o.out, "Folder of history.svg")->capture_default_str()->type_name("DIR");
  command.add_option("--junit", o.junit, "Write a JUnit XML file, one case a row")->type_name("FILE");
  command.add_option("--markdown", o.markdown, "Write a comment for a merge request")->type_name("FILE");
  add_common(command, o.common);
}

}  // namespace

void add_gate(CLI::App& app, Action& action) {
  auto options = std::make_shared<GateOptions>();
  CLI::App* command = app.add_subcommand(
      "gate", "CI: a report against a committed baseline; nothing may get worse beyond what rounding explains");
  command->add_option("report", options->report, "report.json of run or compare")->type_name("REPORT");
  command->add_option("--baseline", options->baseline, "The baseline, parity-baseline/1")->type_name("FILE");
  command->add_option("--diff", options->diff, "What changed between two reports")->expected(2)->type_name("OLD NEW");
  command->add_option("--history", options->history, "Draw verdicts and worst errors of many reports")
      ->expected(1, 1 << 20)
      ->type_name("REPORT...");
  add_decisions(*command, *options);
  add_outputs(*command, *options);
  command->callback([options, &action] { action = [options] { return run_gate(*options); }; });
}

}  // namespace parity::cli
