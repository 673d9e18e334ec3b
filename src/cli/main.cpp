// parity-check: the program. Reads top to bottom: arguments, command, exit status.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "core/error.hpp"

namespace {

// The first line of a message that may be a LibTorch backtrace.
std::string first_line(const char* what) {
  const std::string text(what);
  return text.substr(0, text.find('\n'));
}

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
  CLI::App app(
      "Numerical parity of a model port against its PyTorch recording: which op is the first that is wrong, and is it "
      "a bug or rounding?",
      "parity-check");
  app.set_version_flag("--version", PARITY_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 all pass, 1 a failure, 2 usage error or unusable input, 3 nothing failed but something is "
      "inconclusive, missing or untrusted.");
  parity::cli::Action action;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  std::string command_line = "parity-check";
  for (const std::string& argument : arguments) command_line += " " + argument;
  parity::cli::add_run(app, action, command_line);
  parity::cli::add_compare(app, action, command_line);
  parity::cli::add_weights(app, action, command_line);
  parity::cli::add_video(app, action, command_line);
  parity::cli::add_inspect(app, action);
  parity::cli::add_extract(app, action);
  parity::cli::add_replay(app, action);
  parity::cli::add_bench(app, action);
  parity::cli::add_selftest(app, action, command_line);
  parity::cli::add_doctor(app, action);
  try {
    arguments = with_default_command(std::move(arguments));
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app.parse(arguments);
    return action();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const parity::Error& error) {
    fmt::print(stderr, "parity-check: {}\n", error.what());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "parity-check: out of memory; compare fewer layers at once (--layer)\n");
  } catch (const std::exception& error) {  // LibTorch's own: an op refused its arguments
    fmt::print(stderr, "parity-check: {}\n", first_line(error.what()));
  }
  return 2;
}
