// parity-check extract: one op or one module call of a recording as a file of its own.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.hpp"
#include "cli/open_pair.hpp"
#include "cli/print.hpp"
#include "core/error.hpp"
#include "core/named.hpp"
#include "core/shell.hpp"
#include "jobs/sides.hpp"
#include "report/sink.hpp"
#include "trace/extract.hpp"

namespace parity::cli {
namespace {

struct Options {
  Common common;
  std::string file, layer, out, candidate, map;
  int call = -1;
};

Extracted run(const Options& options) {
  if (std::filesystem::exists(options.out) && std::filesystem::equivalent(options.out, options.file))
    throw Error(fmt::format("{}: would be overwritten by its own extract; choose another -o", options.out));
  ExtractOptions wanted{options.layer, options.call < 0 ? std::nullopt : std::optional(options.call), nullptr, nullptr};
  ShareBar bar("extracting", options.common.quiet);
  wanted.progress = std::ref(bar);
  if (options.candidate.empty()) {
    const Dump dump(options.file);
    set_threads(options.common, &dump);
    return extract(dump, load_program(dump), wanted, options.out);
  }
  const Sides sides = open_pair(options.common, options.file, options.candidate, options.map);
  require_program(sides);
  set_threads(options.common, sides.reference.dump.get());
  for (const std::string& warning : sides.warnings) print_error("parity-check: {}\n", warning);
  wanted.port = port_values(sides);
  return extract(*sides.reference.dump, sides.reference.program, wanted, options.out);
}

int extract_command(const Options& options) {
  const Extracted done = named(
      {options.file}, [&] { return run(options); }, options.candidate.empty() ? options.out : options.candidate);
  if (!options.common.json.empty())
    write_result(options.common.json, nlohmann::json{{"command", "extract"},
                                                     {"file", options.out},
                                                     {"path", done.path},
                                                     {"call", done.call},
                                                     {"ops", done.ops},
                                                     {"leaves", done.leaves},
                                                     {"outputs", done.outputs},
                                                     {"captured", done.captured},
                                                     {"port_outputs", done.port_outputs}});
  if (!options.common.quiet) {
    print("{}: '{}' call {}: {} ops on {} tensors, {} result{}\n", options.out, done.path, done.call, done.ops,
          done.leaves, done.outputs.size(), done.outputs.size() == 1 ? "" : "s");
    if (!done.captured.empty())
      print("  enters without being an argument or a weight: {}\n", fmt::format("{}", fmt::join(done.captured, ", ")));
    if (!options.candidate.empty()) print("  the port has {} of {} results\n", done.port_outputs, done.outputs.size());
    print("  run it: parity-check replay {}\n", shell_word(options.out));
  }
  return !options.candidate.empty() && done.port_outputs == 0 ? 3 : 0;
}

}  // namespace

void add_extract(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("extract", "One op or one module call of a recording as a small file of its own");
  command->add_option("DUMP", options->file, "The recording")->required()->check(existing_file());
  command->add_option("--layer", options->layer, "Path of the module or op: blocks.0.norm1, blocks.0/add.1")
      ->required()
      ->type_name("PATH");
  command->add_option("-o,--output", options->out, "The file to write")->required()->type_name("FILE");
  command->add_option("--call", options->call, "Which of several calls of the path, from 0")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  CLI::Option* candidate =
      command->add_option("--candidate", options->candidate, "A port's recording: its inputs and outputs go in too")
          ->check(existing_path());
  command->add_option("--map", options->map, "Names: REFERENCE = CANDIDATE [perm(…)] [split(axis,i,n)] a line")
      ->check(existing_file())
      ->needs(candidate)
      ->type_name("FILE");
  add_common(*command, options->common);
  command->callback([options, &action] { action = [options] { return extract_command(*options); }; });
}

}  // namespace parity::cli
