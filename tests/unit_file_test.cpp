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

// The second rank, in a process of its own: locks are a process's. Ends with 0 when the first wrote its report. It says
// through a pipe when it has come: opening and closing the file here would give up this process's own locks.
class SecondRank {
 public:
  explicit SecondRank(const std::filesystem::path& file) {
    REQUIRE(::pipe(come_) == 0);
    child_ = ::fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) take_part(file);
  }
  ~SecondRank() {
    for (const int end : come_) ::close(end);
  }
  SecondRank(const SecondRank&) = delete;
  SecondRank& operator=(const SecondRank&) = delete;

  /// Until it has come, and a little longer: it waits in `close` by then.
  void let_it_wait() const {
    char byte = 0;
    REQUIRE(::read(come_[0], &byte, 1) == 1);
    std::this_thread::sleep_for(300ms);
  }

  /// Its exit status, or -1: it still waited after ten seconds.
  int ended() const {
    for (int tries = 0; tries < 1000; ++tries) {
      int status = 0;
      if (::waitpid(child_, &status, WNOHANG) == child_) return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
      std::this_thread::sleep_for(10ms);
    }
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    return -1;
  }

 private:
  [[noreturn]] void take_part(const std::filesystem::path& file) const {
    int status = 2;
    try {
      UnitFile units(options_of(file, 1));
      const bool said = ::write(come_[1], "", 1) == 1;
      status = said && units.close() ? 0 : 1;
    } catch (...) {
    }
    ::_exit(status);
  }

  int come_[2]{};
  pid_t child_ = -1;
};

}  // namespace

TEST_CASE("unit file: a rank that was finished first ends when the report is written") {
  const TemporaryFile file("r.json.units");
  const SecondRank second(file.path());
  {
    UnitFile units(options_of(file.path(), 0));
    second.let_it_wait();
    CHECK(units.close());
  }
  CHECK(second.ended() == 0);
}

TEST_CASE("unit file: a rank that was finished first says so when there will be no report") {
  const TemporaryFile file("r.json.units");
  const SecondRank second(file.path());
  {
    const UnitFile units(options_of(file.path(), 0));
    second.let_it_wait();
  }  // ends without `close`
  CHECK(second.ended() == 1);
}
