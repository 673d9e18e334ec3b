// A Wan transformer's weights as they are published: config.json with .safetensors beside it, in either naming.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>

#include "models/checkpoint.hpp"
#include "models/wan/weights.hpp"

namespace parity {

class WanCheckpoint {
 public:
  /// `place`: a folder with config.json and either one *.safetensors.index.json or one *.safetensors; or such a file,
  /// with config.json beside it. Naming (the originals' or diffusers') is told by the tensors' names. Throws Error,
  /// one line: nothing or too much to choose from, an unreadable file, another model, a name that is missing, one that
  /// the configuration does not make, or a wrong shape. Reads headers, no tensor.
  explicit WanCheckpoint(const std::filesystem::path& place);

  const std::filesystem::path& file() const { return stored_.file(); }
  const nlohmann::json& json() const { return stored_.json(); }  // config.json
  const WanConfig& config() const { return config_; }
  bool diffusers() const { return config_.diffusers; }
  /// What config.json says: "dsky" or "dwan" by class, `dtype_path` of the originals; "" when it says nothing.
  std::string dtype_path() const;

  /// The weights in the dtypes the reference's own loader gives them for linear layers of `low` (half width or fp32):
  /// dwan, dsky: from_pretrained(torch_dtype=low), which keeps `_keep_in_fp32_modules` (diffusers, transformer_wan.py);
  /// sky_ac, sky_noac: model.to(low); wan: fp32. Copied to memory aligned to 64 bytes, as a loaded module's lies: a
  /// matrix product's order of summation depends on it. The checkpoint must outlive the source.
  WeightSource weights(const WanDtypePath& path, at::ScalarType low) const;

 private:
  std::string stored_name(const std::string& original) const;

  Checkpoint stored_;
  WanConfig config_;
};

}  // namespace parity
