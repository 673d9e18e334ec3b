// A file of lines that several processes append to, on one machine or on a file system that machines share. POSIX
// record locks: they work on NFS too, and end with the process, however it ends.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace parity {

class LockedLines {
 public:
  explicit LockedLines(std::filesystem::path file) : file_(std::move(file)) {}
  ~LockedLines() { close(); }
  LockedLines(const LockedLines&) = delete;
  LockedLines& operator=(const LockedLines&) = delete;

  /// False when it is not there and not to be made. Throws Error when it cannot be opened. Closing drops all locks.
  bool open(bool make);
  void close();

  /// Does `action` while no other process does the like.
  void alone(const std::function<void()>& action);
  /// Marks this process as that rank for as long as it lives; false: another one is.
  bool live_as(int rank);
  /// Is there a process of that rank? Not to be asked about oneself.
  bool alive(int rank) const;

  /// Whole lines that were appended since the last call, by anybody.
  std::vector<std::string> new_lines();
  /// Only within `alone`, after new_lines(): what was left of a line whose writer was killed is dropped.
  void append(const std::string& line);
  /// Only within `alone`.
  void clear();

  const std::filesystem::path& file() const { return file_; }

 private:
  [[noreturn]] void fail(const char* what) const;

  const std::filesystem::path file_;
  int descriptor_ = -1;
  int64_t read_ = 0;
};

}  // namespace parity
