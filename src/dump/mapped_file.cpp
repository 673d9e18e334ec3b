#include "dump/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/error.hpp"

namespace parity {
namespace {

std::string reason() { return std::generic_category().message(errno); }

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not block
  if (descriptor < 0) throw Error(fmt::format("{}: cannot be opened ({})", file.string(), reason()));
  struct stat status {};
  const bool regular = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  void* mapped = MAP_FAILED;
  if (regular && status.st_size > 0) {
    size_ = static_cast<size_t>(status.st_size);
    mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor, 0);
  }
  const std::string problem = reason();
  close(descriptor);
  if (!regular) throw Error(fmt::format("{}: is not a regular file", file.string()));
  if (status.st_size == 0) throw Error(fmt::format("{}: is empty", file.string()));
  if (mapped == MAP_FAILED) throw Error(fmt::format("{}: cannot be mapped ({})", file.string(), problem));
  data_ = static_cast<char*>(mapped);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace parity
