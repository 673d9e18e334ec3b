#include "report_golden.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "test_places.hpp"

namespace parity::test {

std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return in ? text.str() : "(cannot read " + file.string() + ")";
}

void check_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path file = std::filesystem::path(PARITY_SOURCE_DIR) / "tests" / "golden" / name;
  if (std::getenv("PARITY_UPDATE_GOLDEN")) std::ofstream(file, std::ios::binary) << text;
  std::istringstream want(read(file)), got(text);
  std::string want_line, got_line;
  for (int line = 1;; ++line) {
    const bool more_want = static_cast<bool>(std::getline(want, want_line)),
               more_got = static_cast<bool>(std::getline(got, got_line));
    if (!more_want && !more_got) return;
    CAPTURE(name);
    CAPTURE(line);
    REQUIRE((more_got ? got_line : "(end)") == (more_want ? want_line : "(end)"));
  }
}

std::filesystem::path scratch_folder(const std::string& name) {
  const auto folder = std::filesystem::temp_directory_path() / ("parity-tests-" + std::to_string(::getpid())) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace parity::test
