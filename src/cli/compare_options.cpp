#include "cli/compare_options.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "cli/device.hpp"
#include "core/error.hpp"
#include "core/shell.hpp"

namespace parity::cli {
namespace {

constexpr const char* kCandidate =
    "The port's recording; of a parallel run all ranks': a pattern ('cand.rank*.h5'), their folder, or a manifest";

void add_budget(CLI::App& command, CompareOptions& options) {
  command
      .add_option("--budget-time", options.budget_time,
                  "What runs of the program with a named change may take, in times of the plain replays (default 2); "
                  "what was not tried is said")
      ->check(number_from(0))
      ->type_name("TIMES");
  command
      .add_option("--budget-memory", options.budget_memory,
                  "What they may hold, in GiB (default: half of what is free)")
      ->check(number_from(1 / 1024.))
      ->type_name("GIB");
}

}  // namespace

void check_save_map(const CompareOptions& options) {
  std::error_code none;  // a file that is not there is another one
  if (!options.save_map.empty() && !options.map.empty() &&
      std::filesystem::equivalent(options.save_map, options.map, none))
    throw Error(
        fmt::format("--save-map {}: would overwrite the map that --map reads; give it another name", options.save_map));
}

Thresholds limits_of(const CompareOptions& options) {
  Thresholds limits = options.thresholds.empty() ? Thresholds{} : read_thresholds(options.thresholds);
  limits.accepted.insert(limits.accepted.end(), options.accepted.begin(), options.accepted.end());
  return limits;
}

std::string rerun_of(const OpResult& row, const CompareOptions& options) {
  std::string text =
      fmt::format("parity-check {} {}", options.live ? "watch" : "compare", shell_word(options.reference));
  if (!options.live) text += " " + shell_word(options.candidate);
  text += fmt::format(" --layer {}", shell_word(pattern_for(row.path)));
  if (!options.map.empty()) text += fmt::format(" --map {}", shell_word(options.map));
  if (!options.inputs.empty()) text += fmt::format(" --inputs {}", shell_word(options.inputs));
  if (!options.thresholds.empty()) text += fmt::format(" --thresholds {}", shell_word(options.thresholds));
  if (options.device != "cpu") text += fmt::format(" --device {}", shell_word(options.device));
  for (const std::string& glob : options.accepted) text += fmt::format(" --accept-path {}", shell_word(glob));
  return text;
}

void add_compare_options(CLI::App& command, CompareOptions& options, bool candidate_required) {
  command.add_option("REF", options.reference, "PyTorch recording, or ONNX model")->required()->check(existing_path());
  CLI::Option* candidate = command.add_option("CAND", options.candidate, kCandidate)->check(existing_places());
  if (candidate_required) candidate->required();
  command.add_option("--map", options.map, "Names: REFERENCE = CANDIDATE [perm(…)] [split(axis,i,n)] a line")
      ->check(existing_file())
      ->type_name("FILE");
  command
      .add_option(
          "--inputs", options.inputs,
          "What a REF that is an ONNX model runs on: tensors by the names of its inputs (.npz, .safetensors, .pt, "
          "a recording); default: those that CAND recorded as its inputs")
      ->check(existing_path())
      ->type_name("FILE");
  command
      .add_option("--layer", options.layer,
                  "Ops to report: 'all', or globs on reference or candidate paths, comma-separated")
      ->type_name("GLOB");
  command
      .add_option("--out", options.out, "Folder for report.md, report.html, report.json, junit.xml, thresholds.json")
      ->type_name("DIR");
  command.add_option("--html", options.html, "The report as one page for a browser")->type_name("FILE");
  command.add_option("--thresholds", options.thresholds, "Limits other than the defaults, with reasons (JSON)")
      ->check(existing_file())
      ->type_name("FILE");
  command
      .add_option(
          "--accept-path", options.accepted,
          "Roundings declared as intended: globs of paths whose gate dtype_path may fail, or of names, as diagnoses "
          "begin with them ('kv cache: fp16', 'missing rounding: add kept wide'); and 'folded into weights'")
      ->delimiter(',')
      ->type_name("GLOB");
  add_device(command, options.device);
  add_budget(command, options);
  command.add_flag("!--no-diagnosis", options.diagnose, "Do not test named faults and cast placements (faster)");
  add_common(command, options.common);
}

void add_compare_whole(CLI::App& command, CompareOptions& options) {
  command
      .add_option(
          "--max-free", options.max_free,
          "Largest relative L2 of the result, with all inherited error. Beyond it, and when no op is wrong: how "
          "far valid arithmetics lie apart, and which ops in higher precision would bring how much")
      ->check(number_from(0))
      ->type_name("REL_L2");
  command
      .add_option("--export", options.exports,
                  "The report for another program: model-explorer, perfetto or csv; see export --help")
      ->allow_extra_args(false)
      ->type_name("FORMAT=PATH");
  command
      .add_option("--save-map", options.save_map,
                  "Write the pairs of this run as a map file for --map, with what has no counterpart below, to fill in")
      ->type_name("FILE");
  command.add_flag("--resume", options.resume,
                   "Go on from what the same comparison had finished when it was interrupted or killed: kept beside "
                   "--json, or in --out");
  command.add_flag("!--no-digest", options.digest,
                   "Do not take the SHA-256 of both sides, for which large files are read once more: the report then "
                   "names the files, not their contents");
  add_attachments(command, options.attachments);
}

}  // namespace parity::cli
