#include "cli/all_commands.hpp"

#include "cli/program.hpp"
#include "video/sources.hpp"

namespace parity::cli {
namespace {

// `parity-check --layer all` means `parity-check run --layer all`.
std::vector<std::string> with_default_command(std::vector<std::string> arguments) {
  if (arguments.empty()) return {"--help"};
  const std::string& first = arguments.front();
  if (first.starts_with("-") && first != "--help" && first != "-h" && first != "--version")
    arguments.insert(arguments.begin(), "run");
  return arguments;
}

}  // namespace

void run_all_commands(std::vector<std::string> arguments) {
  read_arrays_with(open_array);
  CLI::App app;
  describe(app);
  Action action;
  const std::string line = command_line(arguments);
  add_run(app, action, line);
  add_compare(app, action, line);
  add_watch(app, action, line);
  add_weights(app, action, line);
  add_generate(app, action);
  add_gate(app, action);
  add_export(app, action);
  add_video(app, action, line);
  add_inspect(app, action);
  add_extract(app, action);
  add_replay(app, action);
  add_bench(app, action);
  add_selftest(app, action, line);
  add_doctor(app, action);
  leave(run_program(app, action, with_default_command(std::move(arguments))));
}

}  // namespace parity::cli
