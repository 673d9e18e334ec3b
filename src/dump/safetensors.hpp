// Reading .safetensors: one file, or the index of a sharded checkpoint. Tensors lie in the mapped file: only what is
// touched is read.
#pragma once
#include <ATen/ATen.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace parity {

class Safetensors {
 public:
  /// `file`: "model.safetensors", or "model.safetensors.index.json" with its shards beside it.
  /// Throws Error when a file is missing, truncated or foreign, or a header does not describe the data exactly.
  explicit Safetensors(const std::filesystem::path& file);
  ~Safetensors();
  Safetensors(Safetensors&&) noexcept;

  const std::vector<std::string>& names() const;  // sorted
  bool has(std::string_view name) const;
  at::ScalarType dtype(
      std::string_view name) const;  // Error for an unknown name, or a dtype that ATen does not have here
  const std::vector<int64_t>& shape(std::string_view name) const;

  /// A view of the mapped file (copied only where it is misaligned for its dtype). Writing to it never reaches the
  /// file; the mapping lives as long as any tensor of it.
  at::Tensor tensor(std::string_view name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace parity
