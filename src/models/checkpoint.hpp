// Published weights of any model on disk: config.json and .safetensors, one file or shards; or a file without either.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/parameters.hpp"

namespace parity {

class Checkpoint {
 public:
  /// `place`: a folder, a .safetensors file or a .safetensors.index.json, with config.json beside it; or a .pth file
  /// (torch.save of a state dict), which has none. Throws Error when something is missing, ambiguous or damaged, or a
  /// .pth holds more than a state dict; nothing in it is executed. Reads headers, no tensor.
  explicit Checkpoint(const std::filesystem::path& place);

  const std::filesystem::path& file() const { return file_; }
  const nlohmann::json& json() const { return json_; }  // config.json; null of a .pth
  bool has(const std::string& stored_name) const { return tensors_.contains(stored_name); }
  /// Throws Error naming the file when there is no such tensor.
  const std::vector<int64_t>& shape(const std::string& stored_name) const;

  /// Takes a tensor of another layout apart, or gives it another shape: in its place stand `parts` equal ones of its
  /// first axis under "NAME[0]", "NAME[1]", …, each of `shape`. Nothing happens where it is missing or does not divide.
  void take_apart(const std::string& stored_name, int64_t parts, const std::vector<int64_t>& shape);

  /// Throws Error, with a list, when parameters of the configuration are missing or have another shape, or when tensors
  /// are none of them; `surplus` says which others may be there (buffers that older files carry).
  void check(
      const Parameters& parameters, const StoredName& stored_name,
      const std::function<bool(const std::string&)>& surplus = [](const std::string&) { return false; }) const;

  /// A tensor in memory of its own, aligned to 64 bytes as a loaded module's is: a matrix product's order of summation
  /// depends on it. Throws Error when it holds no floating-point numbers.
  at::Tensor load(const std::string& stored_name, at::ScalarType dtype) const;

 private:
  struct Stored {
    std::vector<int64_t> shape;
    std::function<at::Tensor()> value;
  };
  void read_safetensors();
  void read_state_dict();
  const Stored& stored(const std::string& stored_name) const;

  std::filesystem::path file_;
  nlohmann::json json_;
  std::map<std::string, Stored> tensors_;
};

}  // namespace parity
