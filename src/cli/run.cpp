// parity-check run: the main job over one or all reference dumps, and its reports.
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "cli/attachments.hpp"
#include "cli/command.hpp"
#include "cli/device.hpp"
#include "cli/print.hpp"
#include "core/error.hpp"
#include "core/named.hpp"
#include "core/progress.hpp"
#include "core/shell.hpp"
#include "jobs/model_job.hpp"
#include "jobs/rows.hpp"
#include "jobs/sides.hpp"
#include "judge/model_limits.hpp"
#include "report/sink.hpp"
#include "report/sinks.hpp"
#include "trace/device.hpp"
#include "trace/machine.hpp"

namespace parity::cli {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
  Common common;
  Attachments attachments;
  std::string layer = "all", model, variant, device = "cpu", html, thresholds, out = "reports/latest";
  std::vector<std::string> references, take;
  std::vector<std::string> dtypes = {"fp64", "fp32", "bf16", "fp16"}, modes = {"forced", "free"};
};

std::vector<fs::path> embedded_dumps() {
  std::vector<fs::path> files;
  const fs::path folder = embedded_dumps_folder();
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".h5") files.push_back(entry.path());
  if (files.empty())
    throw Error(fmt::format("no reference dumps in {}; name some with --reference FILE", folder.string()));
  std::sort(files.begin(), files.end());
  return files;
}

const ModelEntry* find_model(const Dump& dump) {
  for (const ModelEntry& entry : model_table())
    if (entry.fits(dump)) return &entry;
  return nullptr;
}

class Run {
 public:
  Run(RunOptions options, std::string command_line) : options_(std::move(options)) {
    report_.command = std::move(command_line);
    report_.date = now_text();
  }

  int run() {
    const ReplayDevice there(usable_device(options_.device));
    if (!options_.take.empty() && std::count(options_.modes.begin(), options_.modes.end(), "free") == 0)
      throw Error("--take says who computes what in the free run; --mode leaves that out");
    if (!options_.thresholds.empty()) set_model_limits(read_model_limits(options_.thresholds));
    check_attachments(options_.attachments);
    std::vector<fs::path> files(options_.references.begin(), options_.references.end());
    if (files.empty()) files = embedded_dumps();
    Progress progress(static_cast<int64_t>(files.size()) * 10, options_.common.quiet);
    for (const fs::path& file : files)
      if (named({file.string()}, [&] { return compare(file, files.size(), progress); }))
        write_reports(false);  // an interrupted run leaves what it had
    if (compared_ == 0)
      throw Error(fmt::format("--model '{}' fits none of the {} reference dumps", options_.model, files.size()));
    if (!layer_found_)
      throw Error(fmt::format("--layer '{}' with --dtype {} matches no op; see: parity-check inspect {}",
                              options_.layer, fmt::join(options_.dtypes, ","), files.front().string()));
    report_.machine = this_machine_json();
    attach(report_, options_.attachments, options_.common, options_.out);
    write_reports(true);
    if (!options_.common.quiet)
      print("{}\nReport: {}\n", Assembled{console_summary(report_, want_colour())},
            (fs::path(options_.out) / "report.md").string());
    return exit_status(report_);
  }

 private:
  // Is it one of those asked for?
  bool compare(const fs::path& file, size_t files, Progress& progress) {
    const Dump dump(file);
    const ModelEntry* entry = find_model(dump);
    const std::string name = file.stem().string();
    if (!options_.model.empty() && !(entry && entry->name == options_.model) && dump.model() != options_.model &&
        name.find(options_.model) == std::string::npos)
      return false;
    if (!entry)
      throw Error(fmt::format(
          "{}: no C++ re-implementation of model '{}'; compare two recordings instead: parity-check compare REF CAND",
          file.string(), dump.model()));
    ++compared_;
    set_threads(options_.common, &dump);
    const Program program = load_program(dump);
    const Kernels kernels = kernels_for(program, file);
    MainJobOptions job;
    job.layer = options_.layer;
    job.dtypes = options_.dtypes;
    job.forced = std::count(options_.modes.begin(), options_.modes.end(), "forced") > 0;
    job.free = std::count(options_.modes.begin(), options_.modes.end(), "free") > 0;
    if (!options_.variant.empty()) job.given = fmt::format(" --variant {}", options_.variant);
    if (options_.device != "cpu") job.given += fmt::format(" --device {}", shell_word(options_.device));
    if (!options_.thresholds.empty()) job.given += fmt::format(" --thresholds {}", shell_word(options_.thresholds));
    job.take = TakeRules(options_.take);
    for (const std::string& rule : options_.take) job.given += fmt::format(" --take {}", shell_word(rule));
    job.reference_name = files > 1 ? name : "";
    job.progress = [&](const std::string& step) { progress.step(name + " " + step); };
    job.kernels = kernels;
    const auto make = [&](const Dump& d, Precision precision) { return entry->make(d, precision, kernels); };
    MainJobResult result = run_main_job(dump, program, make, job);
    result.candidate += kernels == Kernels::own ? ", kernels of our own" : ", LibTorch's kernels";
    add(dump, std::move(result), name, files);
    return true;
  }

  // Our own where nothing else is asked for and there are any for the recording's dtype.
  Kernels kernels_for(const Program& program, const fs::path& file) const {
    const bool half = recorded_dtype(program) == "fp16";
    if (half && options_.variant == "own")
      throw Error(fmt::format("{}: --variant own has no kernels for fp16; use --variant aten", file.string()));
    return half || options_.variant == "aten" ? Kernels::aten : Kernels::own;
  }

  void add(const Dump& dump, MainJobResult result, const std::string& name, size_t files) {
    layer_found_ = layer_found_ || !result.rows.empty();
    std::move(result.rows.begin(), result.rows.end(), std::back_inserter(report_.ops));
    std::move(result.logits.begin(), result.logits.end(), std::back_inserter(report_.logits));
    if (!dump.complete()) {
      report_.warnings.push_back(
          fmt::format("{}: the recording was interrupted; only what it holds is compared", name));
      report_.ops.push_back(interrupted_reference());
      report_.ops.back().reference = files > 1 ? name : "";
    }
    report_.coverage[name] = std::move(result.coverage);
    for (const std::string& warning : result.warnings) report_.warnings.push_back(name + ": " + warning);
    const Side side = describe_side(dump);
    if (options_.device != "cpu")
      report_.warnings.push_back(
          fmt::format("{}: the reference's program ran on {}, the C++ model on the CPU", name, options_.device));
    report_.candidate.details["variant"] =
        options_.variant.empty() ? "own" : options_.variant;  // what the re-implementation's ops call (src/ops)
    if (!options_.take.empty()) report_.candidate.details["take"] = options_.take;
    report_.candidate.producer = "parity-check " PARITY_VERSION;
    if (files == 1) {
      report_.reference = side;
      report_.candidate.model = result.candidate;
      return;
    }
    report_.reference.path = embedded_dumps_folder().string();
    report_.reference.details["dumps"].push_back({{"name", name},
                                                  {"path", side.path},
                                                  {"sha256", side.sha256},
                                                  {"model", side.model},
                                                  {"code", side.details.value("code", "")},
                                                  {"producer", side.producer},
                                                  {"details", side.details}});
    report_.candidate.details["models"][name] = result.candidate;
  }

  void write_reports(bool finished) {
    const auto now = std::chrono::steady_clock::now();
    report_.seconds = std::chrono::duration<double>(now - start_).count();
    report_.machine = this_machine_json();
    parity::write_reports(report_, options_.out, finished);
    if (finished) write_result(fs::path(options_.out) / "thresholds.json", to_json(model_limits()));
    if (finished && !options_.common.json.empty()) write_json(report_, options_.common.json);
    if (finished && !options_.html.empty()) write_html(report_, options_.html);
  }

  RunOptions options_;
  Report report_;
  size_t compared_ = 0;
  bool layer_found_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

void add_run(CLI::App& app, Action& action, const std::string& command_line) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* run = app.add_subcommand(
      "run", "Compare the C++ re-implementation with recorded PyTorch activations, op by op (the default command)");
  run->add_option("--layer", options->layer,
                  "Ops to report: 'all', or globs on reference or candidate paths, comma-separated")
      ->required()
      ->type_name("GLOB");
  run->add_option("--model", options->model, "Only dumps of this model: its name, class, or part of the file name")
      ->type_name("NAME");
  run->add_option("--reference", options->references, "Reference dumps (default: all embedded ones)")
      ->check(existing_file())
      ->type_name("FILE");
  run->add_option("--dtype", options->dtypes, "Precisions, comma-separated: fp64, fp32, bf16, fp16; those that apply")
      ->delimiter(',')
      ->check(CLI::IsMember({"fp64", "fp32", "bf16", "fp16"}));
  run->add_option("--mode", options->modes, "forced: each op on the reference's inputs; free: the model on its own")
      ->delimiter(',')
      ->check(CLI::IsMember({"forced", "free"}));
  run->add_option("--variant", options->variant,
                  "Whose kernels the ops call: LibTorch's, or our own where there are any (the default)")
      ->check(CLI::IsMember({"aten", "own"}));
  add_device(*run, options->device);
  run->add_option("--take", options->take,
                  "Hybrid free run: this op or module is the reference's program (=reference) or the port (=port, the "
                  "default) on what the others gave; may be repeated, later rules win")
      ->type_name("GLOB=reference|port");
  run->add_option("--thresholds", options->thresholds, "Limits other than the defaults, with reasons (JSON)")
      ->check(existing_file())
      ->type_name("FILE");
  run->add_option("--out", options->out, "Folder of the reports")->capture_default_str()->type_name("DIR");
  run->add_option("--html", options->html, "The report as one page for a browser, besides the one in the folder")
      ->type_name("FILE");
  add_attachments(*run, options->attachments);
  add_common(*run, options->common);
  run->callback([options, &action, command_line] {
    action = [options, command_line] { return Run(*options, command_line).run(); };
  });
}

}  // namespace parity::cli
