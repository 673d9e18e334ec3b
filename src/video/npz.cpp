// One array of a .npz (a zip of .npy files), unpacked to a temporary file without a name: an array larger than memory
// stays out of it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <zip.h>

#include <cstdlib>

#include "core/error.hpp"
#include "video/array_file.hpp"

namespace parity {
namespace {

struct CloseZip {
  void operator()(zip_t* p) const { zip_discard(p); }
};
struct CloseEntry {
  void operator()(zip_file_t* p) const { zip_fclose(p); }
};

std::vector<std::string> arrays_in(zip_t* archive) {
  std::vector<std::string> names;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive, 0); ++i) {
    const char* name = zip_get_name(archive, static_cast<zip_uint64_t>(i), 0);
    if (name && std::string_view(name).ends_with(".npy"))
      names.emplace_back(std::string_view(name).substr(0, std::string_view(name).size() - 4));
  }
  return names;
}

/// The entry's bytes in an unlinked file; its size.
std::pair<int, int64_t> unpacked(zip_file_t* entry, const std::string& where) {
  std::string name = (std::filesystem::temp_directory_path() / "parity-npz-XXXXXX").string();
  const int descriptor = ::mkstemp(name.data());
  if (descriptor < 0) throw Error(where + ": cannot be unpacked into a temporary file; set TMPDIR");
  ::unlink(name.c_str());
  std::vector<char> buffer(1 << 20);
  int64_t size = 0;
  zip_int64_t got = 0;
  while ((got = zip_fread(entry, buffer.data(), buffer.size())) > 0) {
    if (::write(descriptor, buffer.data(), static_cast<size_t>(got)) != got) got = -2;
    if (got < 0) break;
    size += got;
  }
  if (got == 0) return {descriptor, size};
  ::close(descriptor);
  throw Error(where + (got == -2 ? ": no room to unpack it; set TMPDIR" : ": is damaged and cannot be unpacked"));
}

}  // namespace

std::unique_ptr<ArrayFile> open_npz(const std::filesystem::path& file, const std::string& name) {
  int code = 0;
  const std::unique_ptr<zip_t, CloseZip> archive(zip_open(file.c_str(), ZIP_RDONLY, &code));
  if (!archive) throw Error(fmt::format("{}: is no .npz file, or truncated", file.string()));
  const std::vector<std::string> names = arrays_in(archive.get());
  const std::string chosen = names.size() == 1 ? names.front() : name;
  const std::string where = fmt::format("{}: array '{}'", file.string(), chosen);
  const std::unique_ptr<zip_file_t, CloseEntry> entry(zip_fopen(archive.get(), (chosen + ".npy").c_str(), 0));
  if (!entry)
    throw Error(fmt::format("{} is missing or cannot be read (there is: {}); name one with --dataset", where,
                            fmt::join(names, ", ")));
  const auto [descriptor, size] = unpacked(entry.get(), where);
  return npy_in(descriptor, 0, size, where);
}

}  // namespace parity
