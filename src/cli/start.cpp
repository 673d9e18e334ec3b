// parity-check: the program that people start. Loading LibTorch takes 0.2 s, as long as comparing ten frames does, and
// comparing videos or reports needs none of it: `video` and `gate` run here, everything else in parity-check-all, which
// takes this process over. It links parity-frames alone.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli/print.hpp"
#include "cli/program.hpp"
#include "core/beside.hpp"
#include "video/sources.hpp"

namespace parity {
namespace {

char** arguments_as_given = nullptr;

[[noreturn]] void run_all() {
  cli::set_environment_of_libtorch();
  const auto program = beside_program(PARITY_CHECK_ALL);
  ::execv(program.c_str(), arguments_as_given);
  cli::print_error("parity-check: {}: cannot be started ({}); build the target parity-check\n", program.string(),
                   std::strerror(errno));
  std::exit(2);
}

}  // namespace

}  // namespace parity

int main(int argc, char** argv) {
  parity::arguments_as_given = argv;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty() || (arguments.front() != "video" && arguments.front() != "gate")) parity::run_all();
  CLI::App app;
  parity::cli::describe(app);
  // Arrays are LibTorch's: parity-check-all starts again from the first argument.
  parity::read_arrays_with([](const auto&, const auto&) -> std::unique_ptr<parity::FrameSource> { parity::run_all(); });
  parity::cli::Action action;
  parity::cli::add_video(app, action, parity::cli::command_line(arguments));
  parity::cli::add_gate(app, action);
  parity::cli::leave(parity::cli::run_program(app, action, arguments));
}
