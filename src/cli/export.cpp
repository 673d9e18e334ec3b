// parity-check export: a report for the programs that people look at models with.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/export_places.hpp"
#include "cli/print.hpp"
#include "core/error.hpp"
#include "core/named.hpp"
#include "core/plain.hpp"
#include "export/read_rows.hpp"
#include "onnx/model.hpp"
#include "report/sink.hpp"

namespace parity::cli {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  Common common;
  std::string report, format, out, reference, candidate;
};

const Program* program_in(const OpenedSide* side) {
  return side == nullptr || (side->program.ops.empty() && side->program.boundaries.empty()) ? nullptr : &side->program;
}

struct Recording {
  std::optional<OpenedSide> side;
  std::string note;  // why there is none
};

/// A recording beside a report: the one that was named, else the report's own where it is still there and the same.
Recording recording_of(const Side& described, const std::string& named_file, const char* option) {
  const fs::path file = named_file.empty() ? fs::path(described.path) : fs::path(named_file);
  if (onnx::is_model_file(file))
    return {std::nullopt, fmt::format("'{}' is an ONNX model, whose program is there while it is compared: "
                                      "compare … --export FORMAT=PATH",
                                      plain(file.string()))};
  std::error_code problem;
  if (named_file.empty() && (file.empty() || !fs::is_regular_file(file, problem) || TensorSet::fits(file)))
    return {std::nullopt, fmt::format("no recording at '{}': give it by {}", plain(described.path), option)};
  if (!described.sha256.empty() && sha256_of_file(file) != described.sha256) {
    const std::string what = fmt::format("{}: is not the recording that the report is about", plain(file.string()));
    if (!named_file.empty()) throw Error(what + "; its sha256 differs");
    return {std::nullopt, fmt::format("{}: give that by {}", what, option)};
  }
  Recording found;
  found.side.emplace();
  found.side->file = file;
  named({file.string()}, [&] {
    found.side->dump = std::make_unique<Dump>(file);
    found.side->program = load_program(*found.side->dump);
  });
  return found;
}

int export_command(const ExportOptions& options) {
  const ExportPlace place{&export_format(options.format), options.out};
  if (!place.format->graph && !(options.reference.empty() && options.candidate.empty()))
    throw Error(fmt::format("--to {} takes no recordings: what it shows is in the report", place.format->name));
  const Report report = read_whole_report(options.report);
  Recording reference, candidate;
  if (place.format->graph) {
    reference = recording_of(report.reference, options.reference, "--reference");
    candidate = recording_of(report.candidate, options.candidate, "--candidate");
  }
  const std::vector<fs::path> written = write_export(place, report, reference.side ? &*reference.side : nullptr,
                                                     candidate.side ? &*candidate.side : nullptr);
  nlohmann::json files = nlohmann::json::array(), notes = nlohmann::json::array();
  for (const fs::path& file : written) files.push_back(file.string());
  if (!reference.note.empty()) notes.push_back("the reference's graph has no edges; " + reference.note);
  if (!candidate.note.empty() && !reference.side)
    notes.push_back("the candidate's graph has no edges; " + candidate.note);
  if (!options.common.json.empty())
    write_result(options.common.json, {{"format", place.format->name}, {"files", files}, {"notes", notes}});
  if (options.common.quiet) return 0;
  for (const fs::path& file : written) print("{}\n", file.string());
  for (const auto& note : notes) print("note: {}\n", note.get<std::string>());
  return 0;
}

}  // namespace

std::vector<ExportPlace> export_places(const std::vector<std::string>& texts) {
  std::vector<ExportPlace> out;
  for (const std::string& text : texts) {
    const size_t cut = text.find('=');
    const ExportFormat& format = export_format(text.substr(0, cut));
    if (cut == std::string::npos || cut + 1 == text.size())
      throw Error(fmt::format("--export {}: where to? Write --export {}=PATH", plain(text), format.name));
    out.push_back({&format, text.substr(cut + 1)});
  }
  return out;
}

std::vector<fs::path> write_export(const ExportPlace& place, const Report& report, const OpenedSide* reference,
                                   const OpenedSide* candidate) {
  return place.format->write({report, program_in(reference), program_in(candidate)}, place.place);
}

void add_export(CLI::App& app, Action& action) {
  auto options = std::make_shared<ExportOptions>();
  std::string formats;
  for (const ExportFormat& format : export_formats())
    formats += fmt::format("{}{}: {}", formats.empty() ? "" : "; ", format.name, format.what);
  CLI::App* command =
      app.add_subcommand("export", "A report for other programs: Model Explorer, Perfetto, a spreadsheet");
  command->add_option("report", options->report, "report.json of run or compare")->required()->type_name("REPORT");
  command->add_option("--to", options->format, formats)->required()->type_name("FORMAT");
  command->add_option("-o,--out", options->out, "The file or folder to write")->required()->type_name("PATH");
  command
      ->add_option("--reference", options->reference,
                   "The reference's recording, for the graph's edges (default: where the report says it was)")
      ->check(existing_file())
      ->type_name("FILE");
  command->add_option("--candidate", options->candidate, "The candidate's")->check(existing_file())->type_name("FILE");
  add_common(*command, options->common);
  command->callback([options, &action] { action = [options] { return export_command(*options); }; });
}

}  // namespace parity::cli
