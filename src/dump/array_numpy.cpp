// .npy is read with pread: a mapped file larger than memory counts as ours until the system takes it back. An entry of
// an .npz goes through a temporary file without a name.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "core/error.hpp"
#include "dump/allocate.hpp"
#include "dump/array_file.hpp"
#include "dump/npy.hpp"
#include "dump/zip_file.hpp"

namespace parity {
namespace {

struct Descriptor {  // closed also when its owner's constructor throws
  int id;
  ~Descriptor() { ::close(id); }
};

class NpyArray final : public ArrayFile {
 public:
  /// Takes the descriptor over.
  NpyArray(int descriptor, std::string where) : file_{descriptor}, where_(std::move(where)) {
    struct stat status {};
    if (descriptor < 0 || ::fstat(descriptor, &status) != 0)
      throw Error(fmt::format("{}: cannot be opened ({})", where_, std::strerror(errno)));
    const auto size = static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
    std::string begin(std::min<uint64_t>(size, kMostNpyHeader), '\0');
    read_at(0, begin.data(), begin.size());
    header_ = parse_npy(begin, where_);
    if (header_.fortran_order && header_.shape.size() > 1)
      throw Error(where_ + ": is in Fortran order; save it through numpy.ascontiguousarray");
    if (size < header_.data_begin || size - header_.data_begin < header_.data_bytes)
      throw Error(fmt::format("{}: declares {} bytes of data, fewer are there: the file is truncated", where_,
                              header_.data_bytes));
  }

  at::ScalarType dtype() const override { return header_.dtype; }
  const std::vector<int64_t>& shape() const override { return header_.shape; }

  at::Tensor slice(size_t axis, int64_t index) const override {
    std::vector<int64_t> rest = header_.shape;
    rest.erase(rest.begin() + static_cast<int64_t>(axis));
    const at::Tensor out = empty_for(rest, header_.dtype, where_);
    uint64_t outer = 1, inner = at::elementSize(header_.dtype);
    for (size_t i = 0; i < axis; ++i) outer *= static_cast<uint64_t>(header_.shape[i]);
    for (size_t i = axis + 1; i < header_.shape.size(); ++i) inner *= static_cast<uint64_t>(header_.shape[i]);
    auto* to = static_cast<char*>(out.mutable_data_ptr());
    const auto length = static_cast<uint64_t>(header_.shape[axis]);
    for (uint64_t o = 0; o < outer; ++o)
      read_at(header_.data_begin + (o * length + static_cast<uint64_t>(index)) * inner, to + o * inner, inner);
    return out;
  }

 private:
  void read_at(uint64_t offset, char* to, uint64_t n) const {
    while (n > 0) {
      const ssize_t got = ::pread(file_.id, to, n, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) throw Error(where_ + ": ends early: the file is truncated");
      to += got, offset += static_cast<uint64_t>(got), n -= static_cast<uint64_t>(got);
    }
  }

  Descriptor file_;
  std::string where_;
  NpyHeader header_;
};

/// An open file without a name that holds this entry.
int unpacked(const ZipFile& zip, size_t entry, const std::string& where) {
  std::string name = (std::filesystem::temp_directory_path() / "parity-npz-XXXXXX").string();
  const int descriptor = ::mkstemp(name.data());
  if (descriptor < 0) throw Error(where + ": no temporary file can be made to unpack it; set TMPDIR");
  ::unlink(name.c_str());
  const uint64_t size = zip.entries()[entry].size;
  if (size == 0) return descriptor;
  // posix_fallocate: a full disk is an error here and not a signal at the first touch.
  void* const memory = ::posix_fallocate(descriptor, 0, static_cast<off_t>(size)) == 0
                           ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
                           : MAP_FAILED;
  if (memory == MAP_FAILED) {
    ::close(descriptor);
    throw Error(fmt::format("{}: no room for its {} bytes in the temporary folder; set TMPDIR", where, size));
  }
  try {
    zip.read(entry, static_cast<char*>(memory));
  } catch (...) {
    ::munmap(memory, size);
    ::close(descriptor);
    throw;
  }
  ::munmap(memory, size);
  return descriptor;
}

std::unique_ptr<ArrayFile> open_npz_array(const std::filesystem::path& file, const std::string& name) {
  const ZipFile zip(file);
  const auto entry = zip.entries().size() == 1 ? std::optional<size_t>(0) : zip.find(name + ".npy");
  if (!entry) {
    std::vector<std::string> names;
    for (const auto& e : zip.entries()) names.push_back(e.name.substr(0, e.name.rfind(".npy")));
    throw Error(fmt::format("{}: holds no array '{}' but {}; name one with --dataset", file.string(), name,
                            fmt::join(names, ", ")));
  }
  const std::string where = fmt::format("{}: entry '{}'", file.string(), zip.entries()[*entry].name);
  return std::make_unique<NpyArray>(unpacked(zip, *entry, where), where);
}

}  // namespace

std::unique_ptr<ArrayFile> open_array_file(const std::filesystem::path& file, const std::string& name) {
  if (file.extension() == ".npz") return open_npz_array(file, name);
  if (file.extension() == ".npy")
    return std::make_unique<NpyArray>(::open(file.c_str(), O_RDONLY | O_CLOEXEC), file.string());
  return open_hdf5_array(file, name);
}

}  // namespace parity
