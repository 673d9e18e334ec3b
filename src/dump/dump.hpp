// Reading recordings (probes/FORMAT.md). The only folder that knows HDF5.
#pragma once
#include <ATen/ATen.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace parity {

/// A recording opened for reading. Tensors are read when asked for, nothing is cached. Not thread-safe (HDF5 is not).
class Dump {
 public:
  /// Throws Error when the file is missing, not HDF5, of another format or version, or truncated.
  /// An incomplete (interrupted) recording opens if it holds all values that its events name; `complete()` tells.
  explicit Dump(const std::filesystem::path& file);
  /// A recording that this program wrote, which messages and reports call `name`. Its file may be removed afterwards.
  Dump(const std::filesystem::path& file, const std::filesystem::path& name);
  ~Dump();
  Dump(Dump&&) noexcept;

  const std::filesystem::path& file() const;
  bool complete() const;
  const std::string& level() const;  // op | module | sketch | stats
  const std::string& producer() const;
  const std::string& model() const;  // class name
  const nlohmann::json& provenance() const;

  /// The recorded events in execution order (FORMAT.md, "The program"). A last, half-written line of an incomplete file
  /// is left out.
  const std::vector<nlohmann::json>& events() const;

  /// A stored tensor with its recorded dtype and strides. Throws Error when absent or unreadable.
  at::Tensor value(std::string_view key) const;
  bool has_value(std::string_view key) const;
  std::vector<std::string> value_keys() const;
  /// dtype and shape of a stored tensor without reading its data.
  std::pair<at::ScalarType, std::vector<int64_t>> value_type(std::string_view key) const;

  /// Names as in the state dict ("blocks.0.attn1.to_q.weight"), sorted.
  std::vector<std::string> weight_names() const;
  at::Tensor weight(std::string_view name) const;
  bool has_weight(std::string_view name) const;

  /// Names of the tensors given to forward call `call` ("hidden_states"), sorted.
  std::vector<std::string> input_names(int call = 0) const;
  at::Tensor input(std::string_view name, int call = 0) const;
  bool has_input(std::string_view name, int call = 0) const;

 private:
  struct Impl;
  explicit Dump(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// SHA-256 of a file as lower-case hex. Throws Error when it cannot be read.
std::string sha256_of_file(const std::filesystem::path& file);
std::string sha256_of_text(std::string_view text);
/// SHA-256 of a tensor's elements in row-major order as lower-case hex, whatever its strides.
std::string sha256_of_tensor(const at::Tensor& tensor);

}  // namespace parity
