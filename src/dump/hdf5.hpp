// A thin, checked layer over the HDF5 C API: handles that close themselves, and reads that trust nothing in the file.
// Private to src/dump. Only hard links are followed, so a file can neither lead out of itself nor in a circle.
#pragma once
#include <ATen/ATen.h>
#include <hdf5.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parity::hdf5 {

/// Owns one HDF5 identifier of any kind.
class Handle {
 public:
  Handle() = default;
  explicit Handle(hid_t id) : id_(id) {}
  ~Handle() {
    if (id_ >= 0) H5Idec_ref(id_);
  }
  Handle(Handle&& other) noexcept : id_(other.id_) { other.id_ = -1; }
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
};

/// The innermost message on HDF5's error stack ("bad object header version number"); "" when there is none.
std::string innermost_error();

/// A file opened for reading. Names of objects are given as a group path ("/inputs/0") and one link name in it.
class File {
 public:
  /// Throws Error: missing, a folder, not HDF5, truncated, damaged so that HDF5 would crash. `trusted`: without that
  /// last check.
  explicit File(const std::filesystem::path& file, bool trusted = false);

  const std::filesystem::path& path() const { return path_; }
  /// From now on messages call it so.
  void call(std::filesystem::path name) { path_ = std::move(name); }
  uint64_t size() const { return size_; }  // in bytes

  /// For reading parts of it. Throws Error when missing or no dataset.
  Handle dataset(std::string_view group, std::string_view name) const { return open_dataset(group, name); }

  /// Attributes of the root group; nullopt when absent. Throws Error when of another kind.
  std::optional<std::string> root_string(const char* name) const;
  std::optional<int64_t> root_integer(const char* name) const;

  /// Is there a hard link `name` in `group`? False when the group itself is missing.
  bool has(std::string_view group, std::string_view name) const;
  /// Link names in a group, sorted; empty when the group is missing.
  std::vector<std::string> names(std::string_view group) const;

  /// A stored tensor (FORMAT.md, "Tensors"), strides restored.
  at::Tensor tensor(std::string_view group, std::string_view name) const;
  /// dtype and shape without reading the data.
  std::pair<at::ScalarType, std::vector<int64_t>> tensor_type(std::string_view group, std::string_view name) const;
  /// A one-dimensional uint8 dataset.
  std::string bytes(std::string_view group, std::string_view name) const;

 private:
  const Handle& open_group(std::string_view group) const;  // invalid when missing; stays open: a tensor asks twice
  Handle opened(std::string_view group) const;
  Handle open_dataset(std::string_view group, std::string_view name) const;

  std::filesystem::path path_;
  uint64_t size_ = 0;  // of the file, in bytes: no dataset may claim more
  Handle file_;
  mutable std::map<std::string, Handle, std::less<>> groups_;
};

// What a dataset is; hdf5_tensor.cpp.
struct Layout {
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape, strides;  // strides empty: row-major; in the file the elements always are
  int64_t count = 0;                    // elements
  int64_t misalignment = 0;             // address modulo 64 bytes, as recorded
};

/// Checks type, attributes, shape and storage of a dataset against the file's size. `where` begins every error message.
Layout tensor_layout(hid_t dataset, const std::string& where, uint64_t file_size);
/// Reads the bytes as they are, never converted.
at::Tensor read_tensor(hid_t dataset, const std::string& where, uint64_t file_size);

/// Attributes of any object; nullopt when absent, Error when of another kind.
std::optional<std::string> string_attribute(hid_t object, const char* name, const std::string& where);
std::optional<std::vector<int64_t>> integer_attribute(hid_t object, const char* name, const std::string& where);

/// Throws unless `bytes` (what the dataset claims to hold) is really stored in a file of this size.
void check_storage(hid_t dataset, uint64_t bytes, const std::string& where, uint64_t file_size);

/// "what (HDF5: innermost message)": throws it as Error.
[[noreturn]] void fail(const std::string& what);

}  // namespace parity::hdf5
