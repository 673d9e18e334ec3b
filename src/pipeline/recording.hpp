// Results of stages on disk: a recording of named tensors, as parity_probe.Writer makes it of the reference's pipeline.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "dump/dump_writer.hpp"
#include "pipeline/video.hpp"

namespace parity {

/// By stage (StageHooks).
using StageValues = std::map<std::string, at::Tensor>;

/// What `file` holds under the names of `stages`. Throws Error when it holds none of them, or is no recording.
StageValues read_stages(const std::filesystem::path& file, const std::vector<std::string>& stages);

/// Writes stages as they come.
class StageWriter {
 public:
  /// Throws Error when the file cannot be written. Without `close` nothing is left behind.
  StageWriter(const std::filesystem::path& file, const nlohmann::json& config);
  void add(const std::string& name, const at::Tensor& value);
  void close() { writer_.close(); }

 private:
  DumpWriter writer_;
  int64_t next_ = 0;
};

}  // namespace parity
