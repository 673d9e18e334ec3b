// The file through which units are handed over: to a later run of the same command (--resume), and between processes
// that a launcher started (mpirun). It only grows, one line a thing:
//   parity-units/1 KEY        what the comparison is, as JSON
//   inputs DIGEST TEXT        SHA-256 of both sides, when they are known
//   again                     what follows is a later run's
//   here|left|failed RANK     a process comes and goes
//   take RANK INDEX ...       units that it computes
//   unit DIGEST UNIT          one of them finished (text_of)
// Lines are appended under a lock of the file; while a process lives it holds a lock of its own there, which the kernel
// drops when it is killed: no server, no heartbeat, and nothing to link.
#pragma once
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "core/launch.hpp"
#include "jobs/locked_lines.hpp"
#include "jobs/unit.hpp"

namespace parity {

struct UnitFileOptions {
  std::filesystem::path file;
  nlohmann::json key;  // what decides the result, by name: as told when it differs
  Launch launch;
  bool resume = false;
  std::function<std::string()> inputs;           // digests of both sides; may take long
  std::function<bool()> inputs_known;            // would `inputs` answer at once?
  std::function<void(const std::string&)> tell;  // one line for the user; called from another thread
};

class UnitFile : public WorkUnits {
 public:
  /// Rank 0 begins the file, or goes on from it; the others wait for that. Throws Error when it belongs to another
  /// comparison, is damaged, is in use, or when rank 0 does not show up.
  explicit UnitFile(UnitFileOptions options);
  /// A file without units, and one that was closed, is removed by rank 0.
  ~UnitFile() override;

  void expect(size_t units) override;
  std::vector<int64_t> take(const std::vector<int64_t>& together) override;
  void finished(const WorkUnit& unit) override;
  std::optional<WorkUnit> find(int64_t index) override;
  std::vector<int64_t> arrived() override;
  bool over() override;
  bool reports() const override { return options_.launch.rank == 0; }

  /// Is another process gone that was needed? A line told it.
  bool lost();
  /// WorkUnits read from an earlier run.
  size_t resumed() const { return resumed_; }
  /// Everything was computed. Rank 0 waits until all ranks have come, for none may look for a file that is not there
  /// any more; the others until rank 0 has written the report. False: it never will.
  bool close();

 private:
  void begin();
  void join();
  void go_on();
  void read_new();
  void parse(const std::string& line);
  void append(const std::string& line);
  void write_inputs();
  void watch();
  void look_around();
  void look_after(int rank);
  void look_back();
  bool killed(int rank);
  void lose(const std::string& why);
  std::string signed_line(const std::string& kind, const std::string& text) const;
  std::string checked(const std::string& line, const std::string& kind) const;
  void rethrow() const;

  const UnitFileOptions options_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;  // of all below
  LockedLines lines_;
  std::string head_, inputs_;
  std::map<int64_t, std::string> units_;
  std::set<int64_t> own_, taken_;
  std::vector<int64_t> arrived_;
  std::set<int> here_, left_, failed_;
  size_t expected_ = SIZE_MAX, resumed_ = 0, line_ = 0;
  bool lost_ = false, closed_ = false, inputs_written_ = false;
  std::string broken_;  // found while watching
  bool ending_ = false;
  std::condition_variable wake_;
  std::thread watcher_;
};

}  // namespace parity
