// parity-check compare: two recordings, the reference's program replayed on the candidate's values.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "cli/attachments.hpp"
#include "cli/command.hpp"
#include "cli/compare_options.hpp"
#include "cli/export_places.hpp"
#include "cli/finished_work.hpp"
#include "cli/first_divergence.hpp"
#include "cli/interruption.hpp"
#include "cli/open_pair.hpp"
#include "cli/print.hpp"
#include "cli/report_on.hpp"
#include "cli/report_warnings.hpp"
#include "core/error.hpp"
#include "core/launch.hpp"
#include "core/memory.hpp"
#include "core/named.hpp"
#include "core/progress.hpp"
#include "diagnose/blame.hpp"
#include "jobs/pairs_map.hpp"
#include "jobs/plain_job.hpp"
#include "jobs/port_job.hpp"
#include "jobs/sides.hpp"
#include "jobs/sketch_job.hpp"
#include "jobs/whole_program.hpp"
#include "report/sink.hpp"
#include "report/sinks.hpp"
#include "trace/device.hpp"
#include "trace/machine.hpp"

namespace parity::cli {
namespace {

namespace fs = std::filesystem;

std::function<void(double)> bar(Progress& progress, const char* text) {
  return [&progress, text, shown = 0](double done) mutable {
    for (; shown < static_cast<int>(100 * done); ++shown) progress.step(text);
  };
}

Report head(const Sides& sides, const std::string& command_line) {
  Report report;
  report.command = command_line;
  report.date = now_text();
  report.machine = this_machine_json();
  report.reference = describe_side(sides.reference);
  report.candidate = describe_side(sides.candidate);
  report.warnings = sides.warnings;
  return report;
}

// What no tensor shows: two recordings of one class with other settings are not the same model, however equal their
// tensors are here, and what an interrupted reference does not hold was compared with nothing.
std::vector<OpResult> untrusted_as_a_whole(const Sides& sides) {
  std::vector<OpResult> rows;
  if (const std::string conflict = configuration_conflict(sides); !conflict.empty())
    rows.push_back(untrusted_row("(configuration)", "configuration",
                                 "the two recordings are configured differently: " + conflict));
  if (sides.reference.dump && !sides.reference.dump->complete()) rows.push_back(interrupted_reference());
  return rows;
}

JobResult judged(const Sides& sides, const PortJobOptions& job) {
  if (sides.sketched()) return run_sketch_job(sides, job.layer, job.go_on);
  if (sides.replayable()) {
    give_back_large_blocks();  // the values of many replays, each freed where it was read last
    return run_port_job(*sides.reference.dump, sides.reference.program, sides.candidate.tensors, sides.pairing, job);
  }
  return run_plain_job(sides.reference.tensors, sides.candidate.tensors, sides.map ? &*sides.map : nullptr, job.layer,
                       job.go_on);
}

// Rows and what goes with them into a report whose head is there.
void fill(Report& report, const CompareOptions& options, const Sides& sides, JobResult result) {
  report.ops = std::move(result.rows);
  report.dtype_paths = std::move(result.dtype_paths);
  report.logits = std::move(result.logits);
  for (OpResult& row : report.ops) row.rerun = rerun_of(row, options);
  if (result.interrupted)
    report.ops.push_back(interrupted_comparison(report.ops.size()));
  else if (report.ops.empty())
    throw Error(fmt::format("--layer '{}' matches no compared op", options.layer));
  for (OpResult& row : untrusted_as_a_whole(sides)) report.ops.push_back(std::move(row));
  report.coverage[""] = std::move(result.coverage);
  report.warnings.insert(report.warnings.end(), result.warnings.begin(), result.warnings.end());
}

// What there is of a comparison under way: its JSON alone.
void write_checkpoint(Report report, const CompareOptions& options, const Sides& sides, JobResult so_far) {
  if (options.common.json.empty() && options.out.empty()) return;
  std::stable_sort(so_far.rows.begin(), so_far.rows.end(),
                   [](const OpResult& a, const OpResult& b) { return a.index < b.index; });
  so_far.interrupted = true;
  fill(report, options, sides, std::move(so_far));
  if (!options.common.json.empty()) write_json(report, options.common.json);
  if (!options.out.empty()) parity::write_reports(report, options.out, false);
}

// `paths`: whose cast placements are wanted of every op, "reference" or "candidate"; empty: of failing ones alone.
PortJobOptions job_options(const CompareOptions& options, const std::string& paths) {
  PortJobOptions job;
  job.layer = options.layer;
  job.limits = limits_of(options);
  job.diagnose = options.diagnose;
  job.budget.replays = options.budget_time;
  job.budget.bytes = static_cast<int64_t>(options.budget_memory * 0x1p30);
  job.paths = !paths.empty();
  if (job.paths) job.side = paths;
  if (const int together = launch().size; options.handed_over && together > 1 && job.budget.bytes == 0)
    job.budget.bytes = job.budget.memory() / together;
  return job;
}

// What `compare`, `paths` and `blame` have in common: everything but what is shown.
Report compared(const CompareOptions& options, const Sides& sides, const std::string& paths,
                const std::string& command_line, const Digests& digests, UnitFile* units = nullptr) {
  const auto start = std::chrono::steady_clock::now();
  PortJobOptions job = job_options(options, paths);
  job.units = units;
  Progress progress(100, options.common.quiet);
  job.progress = bar(progress, "comparing");
  const std::vector<std::string> files{options.reference, options.candidate};
  Report report = named(files, [&] { return head(sides, command_line); });
  if (!options.digest)
    report.warnings.emplace_back("--no-digest: nothing shows later which contents the two files had (no SHA-256)");
  Checkpoints checkpoints([&](const JobResult& so_far) {
    digests.enter(report);
    write_checkpoint(report, options, sides, so_far);
  });
  job.go_on = [&](const JobResult& so_far) { return (units == nullptr || !units->lost()) && checkpoints(so_far); };
  JobResult result = named(
      files, [&] { return judged(sides, job); }, options.map);
  named(files, [&] {
    fill(report, options, sides, std::move(result));
    digests.enter(report);
  });
  if (options.layer == "all" && !is_partial(report))
    for (std::string& line : report_warnings(report, job.limits)) report.warnings.push_back(std::move(line));
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

// A process beside the one that reports: it computes units of the program's replay, and says nothing. Where nothing is
// replayed every tensor is read once, and nothing is left to share.
int take_part(const CompareOptions& options, const Sides& sides, UnitFile& units) {
  PortJobOptions job = job_options(options, "");
  job.units = &units;
  const Interruption interruption;
  job.go_on = [&](const JobResult&) { return !units.lost() && !interruption.asked(); };
  if (sides.replayable()) named({options.reference, options.candidate}, [&] { return judged(sides, job); });
  return !interruption.asked() && units.close() ? 0 : 2;
}

void write_reports(const Report& report, const CompareOptions& options) {
  if (!options.common.json.empty()) write_json(report, options.common.json);
  if (!options.html.empty()) write_html(report, options.html);
  if (options.out.empty()) return;
  parity::write_reports(report, options.out);
  write_result(fs::path(options.out) / "thresholds.json", to_json(limits_of(options)));
}

// Asked of the result as a whole, when no op is to blame.
void ask_of_the_whole(const CompareOptions& options, const Sides& sides, Report& report) {
  if (!options.max_free || is_partial(report)) return;
  require_program(sides);
  Progress progress(100, options.common.quiet);
  report.whole = named({options.reference}, [&] {
    return whole_program(*sides.reference.dump, sides.reference.program, report.ops, *options.max_free,
                         bar(progress, "carrying roundings"));
  });
  if (!report.whole) return;
  report.ops.push_back(whole_program_row(*report.whole));
  report.ops.back().index = static_cast<int64_t>(sides.reference.program.boundaries.size());
}

}  // namespace

int report_on(const Sides& sides, const CompareOptions& options, const std::vector<ExportPlace>& exports,
              const std::string& command_line, const std::function<void(Report&)>& amend) {
  const Digests digests(sides, options.digest);
  const auto units = options.handed_over ? finished_work(options, sides, digests) : nullptr;
  if (units && !units->reports()) return take_part(options, sides, *units);
  Report report = compared(options, sides, "", command_line, digests, units.get());
  if (amend) amend(report);
  ask_of_the_whole(options, sides, report);
  if (!options.out.empty()) {
    fs::create_directories(options.out);
    if (!is_partial(report)) attach_repro(report, sides, options.out);
  }
  if (!is_partial(report)) attach(report, options.attachments, options.common, options.out);
  write_reports(report, options);
  if (!options.save_map.empty()) write_file(options.save_map, pairs_map(sides, report.ops));
  for (const ExportPlace& place : exports) write_export(place, report, &sides.reference, &sides.candidate);
  if (!options.common.quiet) print("{}\n", Assembled{console_summary(report, want_colour())});
  if (units && !is_partial(report)) units->close();
  return exit_status(report);
}

namespace {

int run_compare(CompareOptions options, const std::string& command_line) {
  options.handed_over = true;
  if (launch().rank > 0) options.common.quiet = true;
  check_attachments(options.attachments);
  check_save_map(options);
  const std::vector<ExportPlace> exports = export_places(options.exports);
  const Sides sides = open_pair(options.common, options.reference, options.candidate, options.map, options.inputs);
  set_threads(options.common, sides.reference.dump.get());
  return report_on(sides, options, exports, command_line);
}

int run_paths(CompareOptions options, const std::string& command_line) {
  const char* side = "candidate";
  if (options.candidate.empty())
    options.candidate = options.reference, side = "reference";  // which path it took itself
  const Sides sides = open_pair(options.common, options.reference, options.candidate, options.map, options.inputs);
  require_program(sides);
  set_threads(options.common, sides.reference.dump.get());
  const Report report = compared(options, sides, side, command_line, Digests(sides));
  write_reports(report, options);
  if (!options.common.quiet)
    for (const DtypePath& path : report.dtype_paths) print("{}\n", path.sentence);
  return exit_status(report);
}

int run_blame(const CompareOptions& options, const std::string& command_line) {
  const Sides sides = open_pair(options.common, options.reference, options.candidate, options.map, options.inputs);
  require_program(sides);
  set_threads(options.common, sides.reference.dump.get());
  Report report = compared(options, sides, "", command_line, Digests(sides));
  if (is_partial(report)) {
    write_reports(report, options);
    return exit_status(report);
  }
  Progress progress(100, options.common.quiet);
  const Blame found = named({options.reference, options.candidate}, [&] {
    return blame(*sides.reference.dump, sides.reference.program, sides.candidate.tensors, sides.pairing,
                 bar(progress, "carrying errors"));
  });
  std::vector<std::pair<double, const OpResult*>> order;
  for (OpResult& row : report.ops)
    if (const auto share = found.share.find(static_cast<size_t>(row.index)); share != found.share.end()) {
      row.blame = share->second;
      order.emplace_back(share->second, &row);
    }
  write_reports(report, options);
  if (options.common.quiet) return exit_status(report);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  print("final relative L2 error {:.3g}; the local errors together explain {:.1f} % of it\n", found.final_error,
        100 * found.explained);
  for (const auto& [share, row] : order)
    print("{:7.2f} %  {}{}  {}\n", 100 * share, row->path.empty() ? "(result)" : row->path,
          row->call > 0 ? fmt::format(" call {}", row->call) : "", verdict_name(row->verdict));
  return exit_status(report);
}

using Runner = int (*)(const CompareOptions&, const std::string&);

CLI::App* add_two_sided(CLI::App& app, Action& action, const std::string& command_line, const char* name,
                        const char* text, Runner runner, bool candidate_required) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = app.add_subcommand(name, text);
  add_compare_options(*command, *options, candidate_required);
  if (std::string_view(name) == "compare") add_compare_whole(*command, *options);
  command->callback([options, runner, &action, command_line] {
    action = [options, runner, command_line] {
      const ReplayDevice there(usable_device(options->device));
      return runner(*options, command_line);
    };
  });
  return command;
}

}  // namespace

void add_compare(CLI::App& app, Action& action, const std::string& command_line) {
  add_two_sided(
      app, action, command_line, "compare",
      "Judge a port's recording against the PyTorch recording, op by op, on the port's own inputs",
      [](const CompareOptions& o, const std::string& c) { return run_compare(o, c); }, true);
  add_two_sided(
      app, action, command_line, "paths", "Which cast placement each op took: reference, or reference and port",
      [](const CompareOptions& o, const std::string& c) { return run_paths(o, c); }, false);
  add_two_sided(app, action, command_line, "blame",
                "Which op injected how much of the port's final error, by substitution", run_blame, true);
}

}  // namespace parity::cli
