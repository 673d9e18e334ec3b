#include "jobs/locked_lines.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace parity {
namespace {

constexpr int64_t kLocks = int64_t{1} << 40;  // bytes beyond any content: locks need none. The first: whose turn it is

struct flock lock_of(int64_t byte, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = kLocks + byte;
  lock.l_len = 1;
  return lock;
}

bool set_lock(int descriptor, int command, int64_t byte, short type) {
  struct flock lock = lock_of(byte, type);
  while (::fcntl(descriptor, command, &lock) != 0) {
    if (errno == EINTR) continue;
    return false;
  }
  return true;
}

}  // namespace

void LockedLines::fail(const char* what) const {
  throw Error(fmt::format("{}: cannot {}: {}; finished work is kept there: choose another place with --json or --out",
                          file_.string(), what, std::strerror(errno)));
}

bool LockedLines::open(bool make) {
  close();
  descriptor_ = ::open(file_.c_str(), O_RDWR | O_CLOEXEC | (make ? O_CREAT : 0), 0644);
  if (descriptor_ < 0 && !make && errno == ENOENT) return false;
  if (descriptor_ < 0) fail("open it");
  read_ = 0;
  return true;
}

void LockedLines::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

void LockedLines::alone(const std::function<void()>& action) {
  if (!set_lock(descriptor_, F_SETLKW, 0, F_WRLCK)) fail("lock it");
  struct Unlock {
    int descriptor;
    ~Unlock() { set_lock(descriptor, F_SETLK, 0, F_UNLCK); }
  } unlock{descriptor_};
  action();
}

bool LockedLines::live_as(int rank) {
  if (set_lock(descriptor_, F_SETLK, 1 + rank, F_WRLCK)) return true;
  if (errno != EACCES && errno != EAGAIN) fail("lock it");
  return false;
}

bool LockedLines::alive(int rank) const {
  struct flock lock = lock_of(1 + rank, F_WRLCK);
  if (::fcntl(descriptor_, F_GETLK, &lock) != 0) fail("ask for its locks");
  return lock.l_type != F_UNLCK;
}

std::vector<std::string> LockedLines::new_lines() {
  std::string text;
  for (;;) {
    char block[1 << 16];
    const ssize_t got = ::pread(descriptor_, block, sizeof block, read_ + static_cast<int64_t>(text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read it");
    if (got == 0) break;
    text.append(block, static_cast<size_t>(got));
  }
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; begin = end + 1, end = text.find('\n', begin))
    lines.push_back(text.substr(begin, end - begin));
  read_ += static_cast<int64_t>(begin);
  return lines;
}

void LockedLines::append(const std::string& line) {
  if (::ftruncate(descriptor_, read_) != 0) fail("write it");
  const std::string text = line + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t written =
        ::pwrite(descriptor_, text.data() + done, text.size() - done, read_ + static_cast<int64_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("write it");
    done += static_cast<size_t>(written);
  }
  read_ += static_cast<int64_t>(text.size());
}

void LockedLines::clear() {
  if (::ftruncate(descriptor_, 0) != 0) fail("empty it");
  read_ = 0;
}

}  // namespace parity
