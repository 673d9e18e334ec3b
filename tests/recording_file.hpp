// Writes small recordings after probes/FORMAT.md through the HDF5 C API: good ones, and ones broken in a chosen way.
// Shares no code with src/dump.
#pragma once
#include <ATen/ATen.h>
#include <hdf5.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace parity::testing {

/// A path in the temporary folder, removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("parity-" + std::to_string(getpid()) + "-" + name)) {}
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Everything a file holds.
inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class RecordingFile {
 public:
  explicit RecordingFile(const std::filesystem::path& path);
  ~RecordingFile() { close(); }
  RecordingFile(const RecordingFile&) = delete;
  RecordingFile& operator=(const RecordingFile&) = delete;

  /// A root attribute; text is fixed-length, as C programs write it.
  void attribute(const std::string& name, const std::string& text);
  void attribute(const std::string& name, uint8_t number);
  void no_attribute(const std::string& name) { H5Adelete(file_, name.c_str()); }

  /// /values/<key> with its dtype attribute, and strides when not row-major.
  void value(const std::string& key, const at::Tensor& tensor);
  /// The same with parts chosen by the caller: any file type, any shape, any bytes (nullptr: none written), any dtype
  /// attribute ("" leaves it out).
  void raw(const std::string& key, hid_t type, const std::vector<hsize_t>& shape, const void* bytes,
           const std::string& dtype);
  void integers(const std::string& key, const std::string& name,
                const std::vector<int64_t>& numbers);  // attribute of a value
  /// Hard link, groups made as needed: link("weights/linear.weight", "3").
  void link(const std::string& name, const std::string& key);

  void event(const nlohmann::json& event) { events_ += event.dump() + "\n"; }
  void text(const std::string& line) { events_ += line; }  // no newline added
  /// Writes the events and closes. Without `complete` the recording stays an interrupted one.
  void close(bool complete = true);

  hid_t id() const { return file_; }

 private:
  hid_t file_ = -1;
  std::string events_;
};

/// FORMAT.md's file type of a dtype; the caller closes it.
hid_t file_type(at::ScalarType dtype);

/// An encoded value: {"v": id, "d": dtype, "s": shape} and, when a key is given, "k".
nlohmann::json value_json(int64_t id, const at::Tensor& like, const std::string& key = "");

/// Are dtype, shape and every bit equal?
bool same_bits(const at::Tensor& a, const at::Tensor& b);

}  // namespace parity::testing
