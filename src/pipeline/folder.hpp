// A Wan pipeline on disk, as diffusers' save_pretrained writes it: model_index.json and a folder for each stage.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>

namespace parity {

class PipelineFolder {
 public:
  /// Throws Error: no model_index.json, a pipeline that is not written here (WanPipeline and WanImageToVideoPipeline of
  /// Wan2.1 are), or a stage without its folder. Reads no weights.
  explicit PipelineFolder(std::filesystem::path root);

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path stage(const char* name) const { return root_ / name; }  // "transformer", "vae", …
  bool takes_image() const { return takes_image_; }
  const nlohmann::json& scheduler() const { return scheduler_; }  // scheduler_config.json

 private:
  std::filesystem::path root_;
  nlohmann::json scheduler_;
  bool takes_image_ = false;
};

}  // namespace parity
