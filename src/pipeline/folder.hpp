// A Wan pipeline on disk: as diffusers' save_pretrained writes it, or as the original repository publishes it.
#pragma once
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace parity {

class PipelineFolder {
 public:
  /// `root` has model_index.json and a folder for each stage (diffusers); or config.json with the originals' keys, the
  /// transformer's .safetensors beside it, Wan2.1_VAE.pth, models_t5_*.pth and, for image to video, models_clip_*.pth.
  /// `settings`: what the originals keep in their code and tiny ones have otherwise, by stage, as keys of diffusers'
  /// and transformers' configurations ({"vae": {"latents_mean": …}, "scheduler": {…}}); with diffusers' layout none.
  /// Throws Error: neither layout, a pipeline that is not written here (WanPipeline and WanImageToVideoPipeline of
  /// Wan2.1 are), or a stage without its folder or file. Reads no weights.
  explicit PipelineFolder(std::filesystem::path root, nlohmann::json settings = nlohmann::json::object());

  const std::filesystem::path& root() const { return root_; }
  bool original() const { return original_; }
  /// "transformer", "vae", …: its folder, or its file.
  std::filesystem::path stage(const std::string& name) const;
  /// Of a stage; an empty object when nothing was said.
  nlohmann::json settings(const char* stage) const { return settings_.value(stage, nlohmann::json::object()); }
  bool takes_image() const { return takes_image_; }
  const nlohmann::json& scheduler() const { return scheduler_; }  // as scheduler_config.json

 private:
  void open_diffusers();
  void open_original();

  std::filesystem::path root_;
  nlohmann::json settings_, scheduler_;
  std::map<std::string, std::filesystem::path> files_;  // the originals', by stage
  bool original_ = false, takes_image_ = false;
};

}  // namespace parity
