// The bytes under HDF5: a file driver that makes a flush as short as it can be and stops writing for good at the first
// error.
//
// A flush changes structure in place, and a process killed halfway through would leave it torn: what a flush writes is
// therefore collected; blocks that nothing refers to yet go out first, the few changed ones last, in an order that
// leaves a readable file after each (flush_order.hpp). After a failed write HDF5 can neither flush nor close and
// complains until the process ends: here it is told all went well, and the file stays what it was at its last flush.
// And a forked child that ends must not write the structure it inherited.
#pragma once
#include <fcntl.h>
#include <hdf5.h>
#include <sys/stat.h>
#include <unistd.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "flush_order.hpp"

namespace parity::probe {

class Disk {
 public:
  /// Created or emptied; `error` tells when it could not be.
  explicit Disk(const std::string& path)
      : descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) error_ = errno;
  }
  ~Disk() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  int error() const { return error_; }  // the first errno; 0: none
  void stop() { error_ = error_ == 0 ? ECANCELED : error_; }
  bool own_process() const { return getpid() == process_; }

  /// From now on writes gather in memory.
  void collect() { collecting_ = true; }

  /// Writes what has gathered: new blocks, then changes to what a reader may already see.
  void settle() {
    collecting_ = false;
    std::vector<Block> blocks = std::exchange(blocks_, {});
    const auto changed = std::stable_partition(blocks.begin(), blocks.end(),
                                               [&](const Block& block) { return block.first >= settled_; });
    std::sort(blocks.begin(), changed, [](const Block& a, const Block& b) { return a.first < b.first; });
    for (auto block = blocks.begin(); block != changed; ++block) put(block->first, block->second);
    std::vector<Block> seen(std::make_move_iterator(changed), std::make_move_iterator(blocks.end()));
    for (const auto& [address, data] :
         in_order(std::move(seen), [this](auto at, auto count) { return on_disk(at, count); }))
      put(address, data);
    if (error_ == 0) settled_ = on_disk();
  }

  void write(std::uint64_t address, const void* data, std::size_t size) {
    const char* bytes = static_cast<const char*>(data);
    if (collecting_)
      blocks_.emplace_back(address, std::vector<char>(bytes, bytes + size));
    else
      put(address, bytes, size);
  }

  void read(std::uint64_t address, void* data, std::size_t size) const {
    char* out = static_cast<char*>(data);
    std::memset(out, 0, size);
    for (std::size_t done = 0; done < size;) {
      const ssize_t got = pread(descriptor_, out + done, size - done, static_cast<off_t>(address + done));
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    for (const auto& [begin, block] : blocks_) {  // a block may be asked for again before it is out
      const std::uint64_t first = std::max(begin, address), last = std::min(begin + block.size(), address + size);
      if (first < last) std::memcpy(out + (first - address), block.data() + (first - begin), last - first);
    }
  }

  void truncate(std::uint64_t size) {
    if (error_ == 0 && own_process() && ftruncate(descriptor_, static_cast<off_t>(size)) != 0) error_ = errno;
  }

  std::uint64_t size() const {
    std::uint64_t end = on_disk();
    for (const auto& [address, data] : blocks_) end = std::max<std::uint64_t>(end, address + data.size());
    return end;
  }

 private:
  std::vector<char> on_disk(std::uint64_t address, std::size_t count) const {
    std::vector<char> bytes(count);
    read(address, bytes.data(), count);
    return bytes;
  }

  std::uint64_t on_disk() const {
    struct stat status {};
    return fstat(descriptor_, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  }

  void put(std::uint64_t address, const std::vector<char>& data) { put(address, data.data(), data.size()); }

  void put(std::uint64_t address, const char* data, std::size_t size) {
    if (error_ != 0 || !own_process()) return;
    while (size > 0) {
      const ssize_t done = pwrite(descriptor_, data, std::min(size, std::size_t{1} << 30), static_cast<off_t>(address));
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return void(error_ = done < 0 ? errno : ENOSPC);
      address += static_cast<std::uint64_t>(done), data += done, size -= static_cast<std::size_t>(done);
    }
  }

  int descriptor_;
  int error_ = 0;
  const pid_t process_ = getpid();
  bool collecting_ = false;
  std::vector<Block> blocks_;
  std::uint64_t settled_ = 0;  // end of what the last flush left behind
};

// HDF5's view of a Disk. The functions are those of H5FD_class_t; HDF5 opens and closes a file twice while it makes
// one, so they do not own the Disk.
namespace driver {

struct File {
  H5FD_t base;  // HDF5's part, first
  Disk* disk;
  haddr_t end;  // of what HDF5 has allocated
};

inline File* of(H5FD_t* file) { return reinterpret_cast<File*>(file); }
inline const File* of(const H5FD_t* file) { return reinterpret_cast<const File*>(file); }

inline H5FD_t* open_file(const char*, unsigned, hid_t access, haddr_t) {
  const void* found = H5Pget_driver_info(access);
  if (found == nullptr) return nullptr;
  File* file = new File{};
  std::memcpy(&file->disk, found, sizeof file->disk);
  return &file->base;
}

inline herr_t close_file(H5FD_t* file) {
  delete of(file);
  return 0;
}

inline herr_t query(const H5FD_t*, unsigned long* flags) {
  // Not "accumulate metadata": each block is to come by itself.
  if (flags != nullptr) *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

inline haddr_t get_eoa(const H5FD_t* file, H5FD_mem_t) { return of(file)->end; }

inline herr_t set_eoa(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  of(file)->end = end;
  return 0;
}

inline haddr_t get_eof(const H5FD_t* file, H5FD_mem_t) { return of(file)->disk->size(); }

inline herr_t read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size, void* out) {
  of(file)->disk->read(address, out, size);
  return 0;
}

inline herr_t write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size, const void* data) {
  of(file)->disk->write(address, data, size);
  return 0;
}

inline herr_t truncate(H5FD_t* file, hid_t, hbool_t) {
  if (of(file)->disk->size() != of(file)->end) of(file)->disk->truncate(of(file)->end);
  return 0;
}

inline hid_t id() {
  static H5FD_class_t type{};  // fields by name: HDF5 1.13 and 2.0 put new ones between
  static const hid_t registered = [] {
#if H5_VERSION_GE(1, 13, 0)
    type.version = H5FD_CLASS_VERSION;
    type.value = static_cast<H5FD_class_value_t>(511);  // of those left to private use
#endif
    type.name = "parity_probe", type.maxaddr = HADDR_MAX / 2, type.fc_degree = H5F_CLOSE_STRONG,
    type.fapl_size = sizeof(Disk*);
    type.open = open_file, type.close = close_file, type.query = query, type.get_eoa = get_eoa, type.set_eoa = set_eoa,
    type.get_eof = get_eof;
    type.read = read, type.write = write, type.truncate = truncate;
    const H5FD_mem_t kinds[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
    std::copy(std::begin(kinds), std::end(kinds), type.fl_map);
    return H5FDregister(&type);
  }();
  return registered;
}

}  // namespace driver
}  // namespace parity::probe
