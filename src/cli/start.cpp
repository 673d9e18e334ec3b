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
  // Between two loops OpenMP's threads wait by spinning, 300,000 rounds where nothing is set: beside another program
  // that took a quarter of all processor time. Comparing 12 layers x 256 tokens of GPT-2 alone on two cores: 44.4 s
  // so, 45.8 s with this, 52.4 s without spinning.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "20000", 0);
  // LibTorch's large tensors in large pages: 17.4 s in the kernel there against 20.6 s.
  ::setenv("THP_MEM_ALLOC_ENABLE", "1", 0);
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
