// Writing recordings (probes/FORMAT.md): values, names, the program.
#pragma once
#include <ATen/ATen.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace parity {

/// The root attributes of a recording.
struct DumpHead {
  std::string level = "op", producer, model;
  nlohmann::json provenance = nlohmann::json::object();
};

/// One parity-dump/1 file being written: under a temporary name in the same folder, renamed by `close`. Without
/// `close` nothing is left behind. Every member throws Error naming file and dataset when it cannot write.
class DumpWriter {
 public:
  DumpWriter(const std::filesystem::path& file, const DumpHead& head);
  ~DumpWriter();
  DumpWriter(const DumpWriter&) = delete;
  DumpWriter& operator=(const DumpWriter&) = delete;

  /// /values/<key>: the bits of a CPU tensor, with its strides when it is not row-major and they can be kept
  /// (FORMAT.md), and where its memory lies modulo 64 bytes. A key that is written already stays as it is.
  void value(const std::string& key, const at::Tensor& tensor);
  bool has_value(const std::string& key) const;

  /// Hard link /<group>/<name> to /values/<key>, groups made as needed; a name that is taken stays as it is.
  void link(std::string_view group, std::string_view name, const std::string& key);

  /// Appends one line to the program.
  void event(const nlohmann::json& event);

  /// Writes the events, marks the file complete and gives it its name.
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace parity
