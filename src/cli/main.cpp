// parity-check-all: every command. Reads top to bottom: arguments, command, exit status. `parity-check` (start.cpp)
// starts it for all but `video`.
#include <string>
#include <vector>

#include "cli/program.hpp"
#include "video/sources.hpp"

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

int main(int argc, char** argv) {
  parity::read_arrays_with(parity::open_array);
  CLI::App app;
  parity::cli::describe(app);
  parity::cli::Action action;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::string command_line = parity::cli::command_line(arguments);
  parity::cli::add_run(app, action, command_line);
  parity::cli::add_compare(app, action, command_line);
  parity::cli::add_watch(app, action, command_line);
  parity::cli::add_weights(app, action, command_line);
  parity::cli::add_generate(app, action);
  parity::cli::add_gate(app, action);
  parity::cli::add_export(app, action);
  parity::cli::add_video(app, action, command_line);
  parity::cli::add_inspect(app, action);
  parity::cli::add_extract(app, action);
  parity::cli::add_replay(app, action);
  parity::cli::add_bench(app, action);
  parity::cli::add_selftest(app, action, command_line);
  parity::cli::add_doctor(app, action);
  parity::cli::leave(parity::cli::run_program(app, action, with_default_command(std::move(arguments))));
}
