// Long commands show a bar with the time left on a terminal, and nothing of it in a pipe.
#include <doctest/doctest.h>

#include "bench/timing.hpp"
#include "command.hpp"
#include "core/shell.hpp"
#include "test_places.hpp"

using namespace parity;
using namespace parity::test;

TEST_CASE("cli: bench shows the time left on a terminal, and nothing in a pipe") {
  const std::string command = PARITY_CHECK_BINARY " bench video --size 960,544 --frames 48 --threads 1";
  const Finished terminal =
      shell("script -qec " + shell_word(command + " --repeats 5") + " /dev/null");  // of Debian's bsdutils
  REQUIRE(terminal.status == 0);
  CHECK(terminal.out.find(" s left") != std::string::npos);
  CHECK(terminal.out.find("\r\033[K48 frames of 960x544") != std::string::npos);  // the bar is gone before the result
  const Finished pipe = shell(command + " --repeats 0");
  CHECK(pipe.err == "");
}

TEST_CASE("timing: progress is told between runs, from nothing to all") {
  std::vector<double> told;
  int runs = 0;
  const Timing timing = time_runs([&] { ++runs; }, 3, [&](double done) { told.push_back(4 * done - runs); });
  CHECK(runs == 4);
  CHECK(timing.seconds.size() == 3);
  CHECK(told == std::vector<double>(5));
}
