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

// Of the one file with this beginning and end; empty when there is none.
std::filesystem::path file_called(const std::filesystem::path& folder, const char* begin, const char* end) {
  std::filesystem::path found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(begin) || !name.ends_with(end)) continue;
    if (!found.empty()) throw Error(fmt::format("{}: holds two files {}*{}; leave one", folder.string(), begin, end));
    found = entry.path();
  }
  return found;
}

// wan/configs and generate.py: UniPC of order 2 over flow matching, sample_shift 5.
nlohmann::json published_scheduler() {
  return {{"_class_name", "UniPCMultistepScheduler"},
          {"prediction_type", "flow_prediction"},
          {"use_flow_sigmas", true},
          {"flow_shift", 5.0}};
}

}  // namespace

PipelineFolder::PipelineFolder(std::filesystem::path root, nlohmann::json settings)
    : root_(std::move(root)), settings_(std::move(settings)) {
  std::error_code problem;
  original_ = !std::filesystem::exists(root_ / "model_index.json", problem) &&
              std::filesystem::exists(root_ / "config.json", problem);
  original_ ? open_original() : open_diffusers();
}

std::filesystem::path PipelineFolder::stage(const std::string& name) const {
  return original_ ? files_.at(name) : root_ / name;
}

void PipelineFolder::open_original() {
  const nlohmann::json config = read_object(root_ / "config.json");
  const std::string type = config.value("model_type", "");
  if (type != "t2v" && type != "i2v")
    throw Error(fmt::format("{}: model_type '{}' is not written here; t2v and i2v of Wan2.1 are",
                            (root_ / "config.json").string(), type));
  takes_image_ = type == "i2v";
  files_ = {{"transformer", root_},
            {"vae", file_called(root_, "Wan2.1_VAE", ".pth")},
            {"text_encoder", file_called(root_, "models_t5_", ".pth")}};
  if (takes_image_) files_["image_encoder"] = file_called(root_, "models_clip_", ".pth");
  for (const auto& [stage, file] : files_)
    if (file.empty())
      throw Error(fmt::format("{}: has no file for the {} (Wan2.1_VAE.pth, models_t5_*.pth, models_clip_*.pth)",
                              root_.string(), stage));
  scheduler_ = published_scheduler();
  scheduler_.update(settings("scheduler"));
}

void PipelineFolder::open_diffusers() {
  if (!settings_.empty())
    throw Error(fmt::format("{}: is diffusers' layout, whose files say everything; settings are for the originals'",
                            root_.string()));
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
