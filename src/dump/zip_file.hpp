// A zip archive opened for reading: entries that are stored or deflated, nothing else. Private to src/dump.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parity {

class ZipFile {
 public:
  /// Throws Error: no archive, truncated, encrypted, another compression, two entries of one name, or sizes that
  /// cannot be (more than the file holds; more than deflate can make of it, 1032 times, zlib's documentation).
  explicit ZipFile(const std::filesystem::path& file);
  ~ZipFile();

  struct Entry {
    std::string name;
    uint64_t size = 0;  // uncompressed
  };
  const std::vector<Entry>& entries() const;  // in the archive's order
  std::optional<size_t> find(std::string_view name) const;

  /// The first `most` bytes of an entry, or all.
  std::string head(size_t index, uint64_t most) const;
  /// All of an entry into `out` (entries()[index].size bytes); its checksum must hold. Throws Error when damaged, which
  /// begins with `of` ("m.pt: tensor 'a'") where the entry's name says nothing to a person.
  void read(size_t index, char* out, const std::string& of = "") const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace parity
