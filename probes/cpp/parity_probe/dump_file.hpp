// The one place of the probe that writes HDF5: values, links and the event stream of FORMAT.md, in an order that
// survives `kill -9`.
//
// Between two flushes nothing of the file's structure may reach the disk piecemeal, or a killed process leaves groups
// that point nowhere. HDF5 writes structure early only when its metadata cache is full; the cache is therefore larger
// than what can gather between flushes. A flush first brings out the values, then the events that refer to them.
#pragma once
#include <sys/statvfs.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include "disk.hpp"
#include "hdf5.hpp"
#include "pack.hpp"
#include "provenance.hpp"
#include "text.hpp"

namespace parity::probe {

/// One parity-dump/1 file being written. It appears under its final name at once, complete in structure; an older file
/// there is replaced in that moment. Every function throws Error when it cannot.
class DumpFile {
 public:
  struct About {
    std::string model, producer, level, config;
    std::uint64_t reserve_bytes;
    double flush_seconds;
  };

  DumpFile(const std::string& path, const About& about)
      : path_(path), reserve_(about.reserve_bytes), flush_seconds_(about.flush_seconds) {
    const Quiet quiet;
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    const std::string temporary = folder + "." + path.substr(folder.size()) + "." + std::to_string(getpid()) + ".tmp";
    struct stat status {};
    if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
      throw Error(path + ": is a folder or a device; give a file name");
    disk_ = std::make_unique<Disk>(temporary);
    try {
      if (disk_->error() != 0) fail("cannot be made");
      lay_out(temporary, about);
      flush();
      if (std::rename(temporary.c_str(), path.c_str()) != 0)
        throw Error(path + ": cannot be put in place: " + std::strerror(errno));
    } catch (const Error&) {
      abandon();
      unlink(temporary.c_str());
      throw;
    }
  }
  DumpFile(const DumpFile&) = delete;
  DumpFile& operator=(const DumpFile&) = delete;
  ~DumpFile() { abandon(); }

  bool own_process() const { return disk_->own_process(); }

  /// Writes /values/<key>.
  void value(const std::string& key, const Packed& tensor) {
    const Quiet quiet;
    const std::string where =
        "cannot write dataset /values/" + key + " (" + tensor.dtype.name + ", shape " + list_of(tensor.shape) + ")";
    check_room(tensor.bytes.size(), where);
    std::vector<hsize_t> sizes(tensor.shape.begin(), tensor.shape.end());
    const Handle type = file_type(tensor.dtype),
                 space(sizes.empty() ? H5Screate(H5S_SCALAR)
                                     : H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr));
    const Handle dataset(
        H5Dcreate2(values_.get(), key.c_str(), type.get(), space.get(), H5P_DEFAULT, creation_.get(), H5P_DEFAULT));
    bool good = static_cast<bool>(dataset);
    if (good && tensor.bytes.size() > 0)
      good = H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.bytes.data()) >= 0;
    good = good && fixed_text(dataset.get(), "dtype", tensor.dtype.name);
    if (good && !tensor.strides.empty()) good = integers(dataset.get(), "strides", tensor.strides);
    if (!good || disk_->error() != 0) fail(where);
    bytes_since_ += tensor.bytes.size(), ++datasets_since_;
  }

  /// Hard link /<group>/<name> to /values/<key>; a name that is taken stays as it is.
  void link(const std::string& group, const std::string& name, const std::string& key) {
    const Quiet quiet;
    const std::string step = group + "/" + link_name(name);
    if (!links_.insert(step).second) return;
    if (H5Lcreate_hard(values_.get(), key.c_str(), file_.get(), step.c_str(), H5P_DEFAULT, H5P_DEFAULT) < 0)
      fail("cannot link /" + step + " to /values/" + key);
  }

  /// Appends one line to the event stream; flushes when `flush_seconds` have passed or enough has gathered.
  void event(const std::string& line) {
    (events_ += line) += '\n';
    const bool due =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - flushed_).count() > flush_seconds_;
    if (due || bytes_since_ > std::size_t{256} << 20 || datasets_since_ > 4096 || events_.size() > std::size_t{1} << 20)
      flush();
  }

  /// Everything so far reaches the file.
  void flush() {
    const Quiet quiet;
    settle("cannot flush", [this] { return H5Fflush(file_.get(), H5F_SCOPE_LOCAL) >= 0; });
    if (!events_.empty()) settle("cannot write dataset /trace/events", [this] { return append(); });
    events_.clear(), bytes_since_ = datasets_since_ = 0;
    flushed_ = std::chrono::steady_clock::now();
  }

  /// Flushes and closes; `complete` says whether the recording ran to its end.
  void close(bool complete) {
    flush();
    const Quiet quiet;
    if (complete) settle("cannot mark the recording complete", [this] { return mark_complete(); });
    settle("cannot close the file", [this] { return release() && file_.reset() >= 0; });
  }

  /// After a failure: lets go of the file, which stays as its last good flush left it; that can be now, when it was the
  /// reserve that ended the recording.
  void abandon() {
    if (!file_) return;
    const Quiet quiet;
    try {
      if (disk_->error() == 0 && stream_) flush();
    } catch (const Error&) {
    }
    disk_->stop();
    release();
    file_.reset();
  }

 private:
  static constexpr const char* kFull =
      "; free some space or record to another disk: what is in the file stays readable";

  [[noreturn]] void fail(const std::string& what) const {
    const int number = disk_->error();
    const bool full = number == ENOSPC || number == EDQUOT || number == EFBIG;
    throw Error(path_ + ": " + what + ": " + (number != 0 ? std::strerror(number) : "the HDF5 library refused") +
                (full ? kFull : ""));
  }

  // A full disk is best found while there is still room to close the file properly.
  void check_room(std::size_t bytes, const std::string& where) const {
    struct statvfs disk {};
    if (statvfs(path_.c_str(), &disk) != 0) return;
    const std::uint64_t room = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
    if (room < reserve_ || room - reserve_ < bytes + events_.size())
      throw Error(path_ + ": " + where + ": no space left on device: " + std::to_string(bytes) + " bytes wanted, " +
                  std::to_string(room) + " free, " + std::to_string(reserve_) + " of them kept to close the file" +
                  kFull);
  }

  static Handle access(Disk* disk) {
    Handle list(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_libver_bounds(list.get(), H5F_LIBVER_EARLIEST, H5F_LIBVER_V110);
    H5Pset_driver(list.get(), driver::id(), &disk);
    H5AC_cache_config_t cache{};
    cache.version = H5AC__CURR_CACHE_CONFIG_VERSION;
    H5Pget_mdc_config(list.get(), &cache);
    cache.set_initial_size = true;
    cache.initial_size = cache.max_size = cache.min_size = std::size_t{32}
                                                           << 20;  // HDF5's maximum; 4096 datasets need about a tenth
    cache.incr_mode = H5C_incr__off, cache.flash_incr_mode = H5C_flash_incr__off, cache.decr_mode = H5C_decr__off;
    H5Pset_mdc_config(list.get(), &cache);
    return list;
  }

  // Space that became free is not used again: what the last flush left may still refer to it.
  static Handle creation() {
    Handle list(H5Pcreate(H5P_FILE_CREATE));
    H5Pset_file_space_strategy(list.get(), H5F_FSPACE_STRATEGY_NONE, false, 1);
    return list;
  }

  void lay_out(const std::string& temporary, const About& about) {
    file_ = Handle(H5Fcreate(temporary.c_str(), H5F_ACC_TRUNC, creation().get(), access(disk_.get()).get()));
    if (!file_) fail("cannot be made");
    const std::uint8_t no = 0;
    const Handle scalar(H5Screate(H5S_SCALAR)),
        attribute(H5Acreate2(file_.get(), "complete", H5T_STD_U8LE, scalar.get(), H5P_DEFAULT, H5P_DEFAULT));
    bool good = H5Awrite(attribute.get(), H5T_NATIVE_UCHAR, &no) >= 0;
    for (const auto& [name, value] : {std::pair<const char*, std::string>{"format", "parity-dump/1"},
                                      {"level", about.level},
                                      {"producer", about.producer},
                                      {"model", about.model},
                                      {"provenance", provenance(about.config)}})
      good = good && text(file_.get(), name, value);
    creation_ = Handle(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_fill_time(creation_.get(), H5D_FILL_TIME_NEVER);
    H5Pset_obj_track_times(creation_.get(), false);
    for (const char* group : {"weights", "inputs", "outputs", "trace"})
      good = good && Handle(H5Gcreate2(file_.get(), group, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    values_ = Handle(H5Gcreate2(file_.get(), "values", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const hsize_t none = 0, unlimited = H5S_UNLIMITED, chunk = 64 << 10;
    const Handle space(H5Screate_simple(1, &none, &unlimited)), chunked(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(chunked.get(), 1, &chunk);
    stream_ = Handle(
        H5Dcreate2(file_.get(), "trace/events", H5T_STD_U8LE, space.get(), H5P_DEFAULT, chunked.get(), H5P_DEFAULT));
    if (!good || !values_ || !stream_) fail("cannot be laid out");
  }

  // Variable-length UTF-8: a configuration may be longer than the 64 kB of a fixed-length attribute.
  static bool text(hid_t object, const char* name, const std::string& value) {
    const Handle type(H5Tcopy(H5T_C_S1)), space(H5Screate(H5S_SCALAR));
    H5Tset_size(type.get(), H5T_VARIABLE);
    H5Tset_cset(type.get(), H5T_CSET_UTF8);
    const Handle attribute(H5Acreate2(object, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT));
    const char* const pointer = value.c_str();
    return H5Awrite(attribute.get(), type.get(), &pointer) >= 0;
  }

  static bool fixed_text(hid_t object, const char* name, const std::string& value) {
    const Handle type(H5Tcopy(H5T_C_S1)), space(H5Screate(H5S_SCALAR));
    H5Tset_size(type.get(), value.size());
    H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
    const Handle attribute(H5Acreate2(object, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT));
    return H5Awrite(attribute.get(), type.get(), value.data()) >= 0;
  }

  static bool integers(hid_t object, const char* name, const std::vector<std::int64_t>& values) {
    const hsize_t count = values.size();
    const Handle space(H5Screate_simple(1, &count, nullptr)),
        attribute(H5Acreate2(object, name, H5T_STD_I64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT));
    return H5Awrite(attribute.get(), H5T_NATIVE_INT64, values.data()) >= 0;
  }

  bool append() {
    const hsize_t begin = events_end_, count = events_.size(), end = begin + count;
    if (H5Dset_extent(stream_.get(), &end) < 0) return false;
    const Handle target(H5Dget_space(stream_.get())), source(H5Screate_simple(1, &count, nullptr));
    H5Sselect_hyperslab(target.get(), H5S_SELECT_SET, &begin, nullptr, &count, nullptr);
    events_end_ = end;
    return H5Dwrite(stream_.get(), H5T_NATIVE_UCHAR, source.get(), target.get(), H5P_DEFAULT, events_.data()) >= 0 &&
           H5Fflush(file_.get(), H5F_SCOPE_LOCAL) >= 0;
  }

  bool mark_complete() {
    const std::uint8_t yes = 1;
    const Handle attribute(H5Aopen(file_.get(), "complete", H5P_DEFAULT));
    return H5Awrite(attribute.get(), H5T_NATIVE_UCHAR, &yes) >= 0 && H5Fflush(file_.get(), H5F_SCOPE_LOCAL) >= 0;
  }

  bool release() {
    return values_.reset() + stream_.reset() + creation_.reset() >= 0;
  }  // each, whatever becomes of the others

  template <class Step>
  void settle(const char* what, Step step) {
    disk_->collect();
    const bool good = step();
    disk_->settle();
    if (!good || disk_->error() != 0) fail(what);
  }

  std::string path_;
  std::uint64_t reserve_;
  double flush_seconds_;
  std::unique_ptr<Disk> disk_;  // outlives the HDF5 file
  Handle file_, values_, stream_, creation_;
  std::set<std::string> links_;
  std::string events_;
  hsize_t events_end_ = 0;
  std::size_t bytes_since_ = 0, datasets_since_ = 0;
  std::chrono::steady_clock::time_point flushed_ = std::chrono::steady_clock::now();
};

}  // namespace parity::probe
