// Published weights of any model on disk: config.json and .safetensors, one file or shards.
#pragma once
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "dump/safetensors.hpp"
#include "models/parameters.hpp"

namespace parity {

class Checkpoint {
 public:
  /// `place`: a folder, a .safetensors file or a .safetensors.index.json, with config.json beside it. Throws Error when
  /// something is missing, ambiguous or damaged. Reads headers, no tensor.
  explicit Checkpoint(const std::filesystem::path& place);

  const std::filesystem::path& file() const { return file_; }
  const nlohmann::json& json() const { return json_; }  // config.json
  const Safetensors& tensors() const { return tensors_; }

  /// Throws Error when a parameter of the configuration is missing or has another shape, or when a tensor is none of
  /// them; `surplus` says which others may be there (buffers that older files carry).
  void check(
      const Parameters& parameters, const StoredName& stored_name,
      const std::function<bool(const std::string&)>& surplus = [](const std::string&) { return false; }) const;

  /// A tensor in memory of its own, aligned to 64 bytes as a loaded module's is: a matrix product's order of summation
  /// depends on it. Throws Error when it holds no floating-point numbers.
  at::Tensor load(const std::string& stored_name, at::ScalarType dtype) const;

 private:
  std::filesystem::path file_;
  nlohmann::json json_;
  Safetensors tensors_;
};

}  // namespace parity
