// A file in memory, for reading. Private to src/dump.
#pragma once
#include <cstddef>
#include <filesystem>

namespace parity {

/// Copy-on-write: what is written to the memory stays in this process. Unmapped at the end.
class MappedFile {
 public:
  /// Throws Error when the file cannot be opened or mapped.
  explicit MappedFile(const std::filesystem::path& file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace parity
