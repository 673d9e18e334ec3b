// Running the real program from a test.
#pragma once
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "test_places.hpp"

namespace parity::test {

struct Finished {
  int status = -1;  // exit status; 128 + signal when killed
  std::string out, err;
};

inline std::string read_text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Line ends in it: 1 for a message of one line.
inline int lines(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

/// A new empty folder that goes away with the object.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "parity-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// `command` through the shell; standard output and error kept apart.
inline Finished shell(const std::string& command) {
  const Scratch scratch;
  const int raw =
      std::system(("(" + command + ") >" + (scratch / "out").string() + " 2>" + (scratch / "err").string()).c_str());
  return {WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw), read_text(scratch / "out"),
          read_text(scratch / "err")};
}

/// `parity-check ARGUMENTS`, the binary under test.
inline Finished parity_check(const std::string& arguments, const std::string& environment = "") {
  return shell(environment + " " PARITY_CHECK_BINARY " " + arguments);
}

inline std::filesystem::path reference_dump(const std::string& name) {
  return std::filesystem::path(PARITY_SOURCE_DIR) / "reference_dumps" / name;
}

}  // namespace parity::test
