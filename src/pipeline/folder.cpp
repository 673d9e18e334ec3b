#include "pipeline/folder.hpp"

#include <fmt/format.h>

#include <fstream>
#include <vector>

#include "core/error.hpp"

namespace parity {
namespace {

nlohmann::json read_object(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw Error(fmt::format("{}: cannot be read; give a folder of save_pretrained", file.string()));
  auto read = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!read.is_object()) throw Error(fmt::format("{}: not a JSON object", file.string()));
  return read;
}

// model_index.json holds ["library", "class"] for a stage, [null, null] for one that is left out.
bool has_stage(const nlohmann::json& index, const char* name) {
  const auto found = index.find(name);
  return found != index.end() && found->is_array() && found->size() == 2 && (*found)[1].is_string();
}

}  // namespace

PipelineFolder::PipelineFolder(std::filesystem::path root) : root_(std::move(root)) {
  const auto file = root_ / "model_index.json";
  const auto index = read_object(file);
  const std::string type = index.value("_class_name", "");
  if (type != "WanPipeline" && type != "WanImageToVideoPipeline")
    throw Error(fmt::format("{}: pipeline '{}' is not written here; WanPipeline and WanImageToVideoPipeline are",
                            file.string(), type));
  takes_image_ = type == "WanImageToVideoPipeline";
  const auto expand = index.find("expand_timesteps");
  if (has_stage(index, "transformer_2") || (expand != index.end() && *expand == true))
    throw Error(
        fmt::format("{}: is Wan2.2 (two transformers, or a time step a token); Wan2.1 is written here", file.string()));
  std::vector<const char*> stages{"transformer", "vae", "text_encoder", "scheduler"};
  if (takes_image_) stages.push_back("image_encoder");
  for (const char* name : stages)
    if (!std::filesystem::is_directory(root_ / name))
      throw Error(fmt::format("{}: has no folder '{}', which model_index.json names", root_.string(), name));
  scheduler_ = read_object(root_ / "scheduler" / "scheduler_config.json");
}

}  // namespace parity
