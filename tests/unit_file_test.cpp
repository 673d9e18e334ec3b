// Two processes that share a comparison: what one waits for of the other.
#include "jobs/unit_file.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <csignal>

#include "recording_file.hpp"

using namespace parity;
using namespace parity::testing;
using namespace std::chrono_literals;

namespace {

UnitFileOptions options_of(const std::filesystem::path& file, int rank) {
  UnitFileOptions options;
  options.file = file;
  options.key = {{"version", "test"}};
  options.launch = {rank, 2};
  options.inputs = [] { return std::string("none"); };
  options.inputs_known = [] { return true; };
  options.tell = [](const std::string&) {};
  return options;
}

// The second rank, in a process of its own: locks are a process's. Ends with 0 when the first wrote its report.
pid_t second_rank(const std::filesystem::path& file) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  int status = 2;
  try {
    UnitFile units(options_of(file, 1));
    status = units.close() ? 0 : 1;
  } catch (...) {
  }
  ::_exit(status);
}

// Until the second rank has come, and a little longer: it waits by then.
void let_it_wait(const std::filesystem::path& file) {
  for (int tries = 0; tries < 1000 && !contains(bytes_of(file), "\nhere 1\n"); ++tries)
    std::this_thread::sleep_for(10ms);
  std::this_thread::sleep_for(300ms);
}

// Exit status, or -1: it still waited after ten seconds.
int ended(pid_t child) {
  for (int tries = 0; tries < 1000; ++tries) {
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
    std::this_thread::sleep_for(10ms);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return -1;
}

}  // namespace

TEST_CASE("unit file: a rank that was finished first ends when the report is written") {
  const TemporaryFile file("r.json.units");
  const pid_t child = second_rank(file.path());
  REQUIRE(child > 0);
  {
    UnitFile units(options_of(file.path(), 0));
    let_it_wait(file.path());
    CHECK(units.close());
  }
  CHECK(ended(child) == 0);
}

TEST_CASE("unit file: a rank that was finished first says so when there will be no report") {
  const TemporaryFile file("r.json.units");
  const pid_t child = second_rank(file.path());
  REQUIRE(child > 0);
  {
    UnitFile units(options_of(file.path(), 0));
    let_it_wait(file.path());
  }  // ends without `close`: "failed 0"
  CHECK(ended(child) == 1);
}
