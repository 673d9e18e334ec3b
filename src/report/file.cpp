// Writing a file whole or not at all.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/error.hpp"
#include "report/markup.hpp"
#include "report/sink.hpp"

namespace parity {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, const char* what, int error) {
  throw Error(fmt::format("{}: cannot {}: {}; choose another place with --out or free it", plain(file.string()), what,
                          std::strerror(error)));
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

void write_file(const std::filesystem::path& file, const std::string& text) {
  std::error_code error;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
  if (error) fail(file, "create its folder", error.value());
  std::string temporary = file.string() + ".XXXXXX";
  const int descriptor = ::mkstemp(temporary.data());  // a name of our own: two runs at once never share one
  if (descriptor < 0) fail(file, "create a file beside it", errno);
  const bool written = write_all(descriptor, text) && ::fchmod(descriptor, 0644) == 0;
  const int write_error = errno;
  const bool closed = ::close(descriptor) == 0;
  if (!written || !closed || ::rename(temporary.c_str(), file.c_str()) != 0) {
    const int reason = written ? errno : write_error;
    ::unlink(temporary.c_str());
    fail(file, "write it", reason);
  }
}

}  // namespace parity
