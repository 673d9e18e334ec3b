// parity-check weights: which parameter of a port is which of the reference, and what went wrong in converting them.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <map>

#include "cli/command.hpp"
#include "cli/print.hpp"
#include "core/named.hpp"
#include "core/progress.hpp"
#include "core/shell.hpp"
#include "report/markup.hpp"
#include "report/sink.hpp"
#include "report/summary.hpp"
#include "weights/audit.hpp"
#include "weights/rules.hpp"

namespace parity::cli {
namespace {

struct WeightsOptions {
  Common common;
  std::string reference, candidate, map, html;
};

bool failed(const OpResult& row) { return row.verdict == Verdict::fail || row.verdict == Verdict::shape; }

std::string headline_of(const Report& report) {
  int64_t faulty = 0, open = 0;
  for (const OpResult& row : report.ops) (failed(row) ? faulty : open) += failed(row) || row.verdict != Verdict::pass;
  const size_t all = report.ops.size();
  if (faulty > 0) return fmt::format("FAIL: {} of {} parameters {} faulty.", faulty, all, faulty == 1 ? "is" : "are");
  if (open > 0)
    return fmt::format("INCONCLUSIVE: {} of {} parameters are missing or extra; no other fault.", open, all);
  return all == 0 ? "INCONCLUSIVE: no parameter was compared."
                  : fmt::format("PASS: all {} parameters are there, unchanged but for layout and dtype.", all);
}

std::string row_text(const OpResult& row) {
  std::string text =
      text_of("{}  {}  {} {}", pad_right(verdict_name(row.verdict), 12), row.path, row.dtype, shape_text(row.shape));
  if (!row.candidate_path.empty() && row.candidate_path != row.path)
    text += text_of(", candidate {}", row.candidate_path);
  return text + text_of("\n              {}\n", row.diagnosis);
}

// "layers 3 and 5 swapped" for a row that says only this; "" for any other.
std::string swapped_layers(const OpResult& row) {
  if (row.explanations.size() != 1 || !row.explanations[0].change.what.starts_with("layers ")) return "";
  return row.explanations[0].change.what.substr(0, row.explanations[0].change.what.find(':'));
}

// Every row that is not sound; whole layers that are swapped together.
std::string faults_text(const Report& report) {
  std::string text;
  std::map<std::string, std::vector<std::string>> layers;
  for (const OpResult& row : report.ops) {
    if (row.verdict == Verdict::pass) continue;
    const std::string swapped = swapped_layers(row);
    swapped.empty() ? void(text += row_text(row)) : layers[swapped].push_back(row.path);
  }
  for (const auto& [swapped, paths] : layers)
    text += text_of("{}  wrong layer: {}: {} parameters\n              {}\n", pad_right("fail", 12), swapped,
                    paths.size(), fmt::format("{}", fmt::join(paths, " ")));
  return text.empty() ? text : text + "\n";
}

void show(const Report& report, const Mapping& mapping, size_t pairs) {
  print("{}\n\n{}", headline_of(report), Assembled{faults_text(report)});
  print("mapping of {} parameters, reference = candidate, in {} rules:\n", pairs, mapping.weights.size());
  for (const std::string& rule : mapping.weights) print("  {}\n", rule);
  for (const std::string& pair : mapping.unwritable) print("  {} (a name that no map file can hold)\n", pair);
  print("\n");
  for (const std::string& warning : report.warnings) print("note: {}\n", warning);
  print("{}\n", totals_text(report));
}

Report head(const WeightsOptions& options, const WeightSide& reference, const WeightSide& candidate,
            const std::string& command_line) {
  Report report;
  report.command = command_line;
  report.date = now_text();
  report.machine = this_machine_json();
  report.reference = reference.describe();
  report.candidate = candidate.describe();
  for (const std::string& note : reference.notes()) report.warnings.push_back(options.reference + ": " + note);
  for (const std::string& note : candidate.notes()) report.warnings.push_back(options.candidate + ": " + note);
  return report;
}

int run_weights(const WeightsOptions& options, const std::string& command_line) {
  const auto start = std::chrono::steady_clock::now();
  const c10::InferenceMode no_autograd;
  const auto open = [](const std::string& file) { return named({file}, [&] { return WeightSide(file); }); };
  const WeightSide reference = open(options.reference), candidate = open(options.candidate);
  set_threads(options.common, nullptr);
  Report report = head(options, reference, candidate, command_line);
  AuditResult audit;
  {
    Progress progress(2 * static_cast<int64_t>(reference.parameters().size()) +
                          static_cast<int64_t>(candidate.parameters().size()) + 8,
                      options.common.quiet);
    audit = named({options.reference, options.candidate}, [&] {
      return audit_weights(reference, candidate, [&](const std::string& what) { progress.step(what); });
    });
  }
  const Mapping mapping = mapping_of(audit, reference, candidate);
  report.ops = std::move(audit.rows);
  for (OpResult& row : report.ops)
    row.rerun = fmt::format("parity-check weights {} {}", shell_word(options.reference), shell_word(options.candidate));
  report.coverage[""] = std::move(audit.coverage);
  report.warnings.insert(report.warnings.end(), audit.warnings.begin(), audit.warnings.end());
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!options.common.json.empty()) write_json(report, options.common.json);
  if (!options.html.empty()) write_html(report, options.html);
  if (!options.map.empty()) write_file(options.map, map_file(mapping, options.reference, options.candidate));
  if (!options.common.quiet) show(report, mapping, audit.pairs.size());
  return exit_status(report);
}

}  // namespace

void add_weights(CLI::App& app, Action& action, const std::string& command_line) {
  auto options = std::make_shared<WeightsOptions>();
  CLI::App* command = app.add_subcommand(
      "weights",
      "Audit converted weights: pairs parameters by content whatever their names and layout, names each fault");
  command->add_option("REF", options->reference, "Recording, .safetensors, .npz, .pt, or a folder of them")
      ->required()
      ->check(existing_path());
  command->add_option("CAND", options->candidate, "The converted ones, in any of these formats")
      ->required()
      ->check(existing_path());
  command->add_option("--save-map", options->map, "Write the mapping found as a map file for compare --map")
      ->type_name("FILE");
  command->add_option("--html", options->html, "The audit as one page for a browser")->type_name("FILE");
  add_common(*command, options->common);
  command->callback([options, &action, command_line] {
    action = [options, command_line] { return run_weights(*options, command_line); };
  });
}

}  // namespace parity::cli
