#include "dump/zip_file.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <map>

#include "core/error.hpp"

namespace parity {
namespace {

using Archive = std::unique_ptr<zip_t, decltype(&zip_discard)>;
using Opened = std::unique_ptr<zip_file_t, decltype(&zip_fclose)>;

Archive open_archive(const std::filesystem::path& file) {
  std::error_code problem;
  if (!std::filesystem::is_regular_file(file, problem))
    throw Error(fmt::format("{}: {}", file.string(),
                            std::filesystem::exists(file, problem) ? "is not a regular file" : "no such file"));
  int code = 0;
  Archive archive(zip_open(file.c_str(), ZIP_RDONLY, &code), zip_discard);
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  throw Error(fmt::format("{}: is not a zip archive, or a truncated one ({})", file.string(), reason));
}

void check_entry(const zip_stat_t& stat, const std::string& where, uint64_t file_size) {
  constexpr zip_uint64_t kNeeded =
      ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if ((stat.valid & kNeeded) != kNeeded) throw Error(where + " does not say how large it is");
  if (stat.encryption_method != ZIP_EM_NONE) throw Error(where + " is encrypted");
  if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE)
    throw Error(fmt::format("{} is compressed by method {}; only stored and deflated entries are read", where,
                            stat.comp_method));
  const uint64_t limit = stat.comp_method == ZIP_CM_STORE ? stat.comp_size : stat.comp_size * 1032;
  if (stat.comp_size > file_size || stat.size > limit)
    throw Error(fmt::format("{} declares {} bytes in {} of a file of {}: the archive is damaged", where, stat.size,
                            stat.comp_size, file_size));
}

}  // namespace

struct ZipFile::Impl {
  std::string file;
  Archive archive;
  std::vector<Entry> entries;
  std::map<std::string, size_t, std::less<>> index;

  std::string where(size_t entry) const { return fmt::format("{}: entry '{}'", file, entries[entry].name); }

  // Reads `bytes`; false at an early end, a bad checksum or a damaged stream.
  static bool fill(zip_file_t* from, char* out, uint64_t bytes) {
    while (bytes > 0) {
      const zip_int64_t got = zip_fread(from, out, bytes);
      if (got <= 0) return false;
      out += got;
      bytes -= static_cast<uint64_t>(got);
    }
    return true;
  }

  Opened open(size_t entry) const {
    Opened opened(zip_fopen_index(archive.get(), entry, 0), zip_fclose);
    if (!opened) throw Error(fmt::format("{} cannot be read ({})", where(entry), zip_strerror(archive.get())));
    return opened;
  }
};

ZipFile::ZipFile(const std::filesystem::path& file) : impl_(new Impl{file.string(), open_archive(file), {}, {}}) {
  const uint64_t size = std::filesystem::file_size(file);
  const zip_int64_t count = zip_get_num_entries(impl_->archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    if (zip_stat_index(impl_->archive.get(), static_cast<zip_uint64_t>(i), 0, &stat) != 0 ||
        (stat.valid & ZIP_STAT_NAME) == 0)
      throw Error(fmt::format("{}: entry {} of the archive cannot be read", impl_->file, i));
    impl_->entries.push_back({stat.name, stat.size});
    check_entry(stat, impl_->where(static_cast<size_t>(i)), size);
    if (!impl_->index.emplace(stat.name, i).second)
      throw Error(impl_->where(static_cast<size_t>(i)) + " is there twice");
  }
}

ZipFile::~ZipFile() = default;

const std::vector<ZipFile::Entry>& ZipFile::entries() const { return impl_->entries; }

std::optional<size_t> ZipFile::find(std::string_view name) const {
  const auto found = impl_->index.find(name);
  return found == impl_->index.end() ? std::nullopt : std::optional(found->second);
}

std::string ZipFile::head(size_t index, uint64_t most) const {
  std::string text(std::min(most, impl_->entries[index].size), '\0');
  if (!Impl::fill(impl_->open(index).get(), text.data(), text.size())) throw Error(impl_->where(index) + " is damaged");
  return text;
}

void ZipFile::read(size_t index, char* out, const std::string& of) const {
  const Opened opened = impl_->open(index);
  char beyond = 0;  // libzip checks the CRC where the data ends
  if (!Impl::fill(opened.get(), out, impl_->entries[index].size) || zip_fread(opened.get(), &beyond, 1) != 0)
    throw Error((of.empty() ? impl_->where(index) : fmt::format("{}: its entry '{}'", of, entries()[index].name)) +
                " is damaged");
}

}  // namespace parity
