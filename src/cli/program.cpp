#include "cli/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "cli/print.hpp"
#include "core/error.hpp"
#include "core/launch.hpp"
#include "core/shell.hpp"

namespace parity::cli {
namespace {

// The first line of a message that may be a LibTorch backtrace.
std::string first_line(const char* what) {
  const std::string text(what);
  return text.substr(0, text.find('\n'));
}

// Processes of one launch fail alike: the first speaks, and the launcher ends the others.
void after_the_first() {
  if (launch().rank > 0) std::this_thread::sleep_for(std::chrono::seconds(3));
}

constexpr char kOutOfMemory[] = "parity-check: out of memory; compare fewer layers at once (--layer)\n";

}  // namespace

std::string command_line(const std::vector<std::string>& arguments) {
  std::string text = "parity-check";
  for (const std::string& argument : arguments) text += fmt::format(" {}", shell_word_if_needed(argument));
  return text;
}

void describe(CLI::App& app) {
  app.name("parity-check");
  app.description(
      "Numerical parity of a model port against its PyTorch recording: which op is the first that is wrong, and is it "
      "a bug or rounding?");
  app.set_version_flag("--version", PARITY_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 all pass, 1 a failure, 2 usage error or unusable input, 3 nothing failed but something is "
      "inconclusive, missing or untrusted.");
}

int run_program(CLI::App& app, const Action& action, std::vector<std::string> arguments) {
  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app.parse(arguments);
    return action();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return launch().rank > 0 ? 0 : app.exit(error);  // --help, --version
    after_the_first();
    const auto chosen = app.get_subcommands();
    print_error("parity-check: {}; see parity-check {}--help\n", first_line(error.what()),
                chosen.empty() ? "" : chosen.front()->get_name() + " ");
  } catch (const Error& error) {
    after_the_first();
    print_error("parity-check: {}\n", error.what());
  } catch (const std::bad_alloc&) {
    print_error(kOutOfMemory);
  } catch (const std::exception& error) {  // LibTorch's own: an op refused its arguments, or its allocator gave up
    const std::string what = first_line(error.what());
    if (what.find("can't allocate memory") != std::string::npos)
      print_error(kOutOfMemory);
    else
      print_error("parity-check: {}\n", what);
  }
  return 2;
}

void set_environment_of_libtorch() {
  // Between two loops OpenMP's threads wait by spinning, 300,000 rounds where nothing is set: beside another program
  // that took a quarter of all processor time. Comparing 12 layers x 256 tokens of GPT-2 alone on two cores: 44.4 s
  // so, 45.8 s with this, 52.4 s without spinning.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "20000", 0);
  // LibTorch's large tensors in large pages: 17.4 s in the kernel there against 20.6 s.
  ::setenv("THP_MEM_ALLOC_ENABLE", "1", 0);
}

void leave(int status) {
  if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0) && status != 2) {
    print_error("parity-check: standard output could not take everything; is the disk full?\n");
    status = 2;
  }
  std::_Exit(status);
}

}  // namespace parity::cli
