#include "models/wan/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <set>

#include "core/error.hpp"
#include "models/wan/names.hpp"

namespace parity {
namespace {

using std::filesystem::path;

// The one file in `folder` that ends in `suffix`; empty when there is none.
path only_file(const path& folder, const std::string& suffix) {
  path found;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem)) {
    if (!entry.path().filename().string().ends_with(suffix)) continue;
    if (!found.empty())
      throw Error(fmt::format("{}: holds both {} and {} without one index for all; give one of them", folder.string(),
                              std::min(found, entry.path()).filename().string(),
                              std::max(found, entry.path()).filename().string()));
    found = entry.path();
  }
  if (problem) throw Error(fmt::format("{}: cannot be listed ({})", folder.string(), problem.message()));
  return found;
}

path weight_file(const path& place) {
  std::error_code problem;
  if (!std::filesystem::is_directory(place, problem)) return place;
  path found = only_file(place, ".safetensors.index.json");
  if (found.empty()) found = only_file(place, ".safetensors");
  if (found.empty()) throw Error(fmt::format("{}: holds no .safetensors file", place.string()));
  return found;
}

nlohmann::json read_config(const path& weights) {
  const path file = weights.parent_path() / "config.json";
  std::ifstream stream(file);
  if (!stream) throw Error(fmt::format("{}: cannot be read; the model's config.json belongs there", file.string()));
  nlohmann::json config = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) throw Error(fmt::format("{}: is not a JSON object", file.string()));
  return config;
}

// "'a', 'b' and 3 more"
std::string some_of(const std::vector<std::string>& names) {
  std::vector<std::string> shown(names.begin(),
                                 names.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(names.size(), 3)));
  for (std::string& name : shown) name = "'" + name + "'";
  const std::string text = fmt::format("{}", fmt::join(shown, ", "));
  return names.size() > 3 ? fmt::format("{} and {} more", text, names.size() - 3) : text;
}

// diffusers' WanTransformer3DModel and SkyReelsV2Transformer3DModel, `_keep_in_fp32_modules`: whole steps of a path.
bool kept_in_fp32(const std::string& stored) {
  for (const char* module : {"rope", "time_embedder", "scale_shift_table", "norm1", "norm2", "norm3"})
    if (("." + stored + ".").find(fmt::format(".{}.", module)) != std::string::npos) return true;
  return false;
}

at::ScalarType loaded_dtype(const WanDtypePath& path, at::ScalarType low, const std::string& stored) {
  if (path.name == "wan") return at::kFloat;
  const bool from_pretrained = path.name == "dsky" || path.name == "dwan";
  return from_pretrained && kept_in_fp32(stored) ? at::kFloat : low;
}

}  // namespace

WanCheckpoint::WanCheckpoint(const path& place)
    : file_(weight_file(place)), json_(read_config(file_)), tensors_(file_), config_(wan_config(json_)) {
  const bool diffusers = tensors_.has("condition_embedder.time_proj.weight");
  if (!diffusers && !tensors_.has("time_projection.1.weight"))
    throw Error(
        fmt::format("{}: is not a Wan or SkyReels-V2 transformer (no 'time_projection.1.weight', no "
                    "'condition_embedder.time_proj.weight')",
                    file_.string()));
  if (diffusers != config_.diffusers)
    throw Error(fmt::format("{}: the tensors carry {} names, but config.json is of the other kind", file_.string(),
                            diffusers ? "diffusers'" : "the originals'"));
  check_parameters();
}

std::string WanCheckpoint::stored_name(const std::string& original) const {
  return diffusers() ? wan_diffusers_name(original) : original;
}

void WanCheckpoint::check_parameters() const {
  std::vector<std::string> missing, extra;
  std::set<std::string> known;
  for (const auto& [original, shape] : wan_parameters(config_)) {
    const std::string name = stored_name(original);
    known.insert(name);
    if (!tensors_.has(name))
      missing.push_back(name);
    else if (tensors_.shape(name) != shape)
      throw Error(fmt::format("{}: tensor '{}' is [{}], config.json makes it [{}]", file_.string(), name,
                              fmt::join(tensors_.shape(name), ", "), fmt::join(shape, ", ")));
  }
  for (const std::string& name : tensors_.names())
    if (!known.contains(name)) extra.push_back(name);
  if (!missing.empty())
    throw Error(fmt::format("{}: lacks {}, which config.json makes; is it the config.json of this checkpoint?",
                            file_.string(), some_of(missing)));
  if (!extra.empty())
    throw Error(fmt::format("{}: holds {}, which config.json does not make; is it the config.json of this checkpoint?",
                            file_.string(), some_of(extra)));
}

std::string WanCheckpoint::dtype_path() const {
  const auto text = [this](const char* key) {
    const auto found = json_.find(key);
    return found != json_.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  if (!diffusers()) return text("dtype_path");
  return text("_class_name") == "SkyReelsV2Transformer3DModel" ? "dsky" : "dwan";
}

WeightSource WanCheckpoint::weights(const WanDtypePath& path, at::ScalarType low) const {
  const auto get = [this, &path, low](const std::string& original) {
    const std::string name = stored_name(original);
    const at::Tensor stored = tensors_.tensor(name);
    if (!stored.is_floating_point())
      throw Error(fmt::format("{}: tensor '{}' holds no floating-point numbers", file_.string(), name));
    return at::empty(stored.sizes(), loaded_dtype(path, low, name)).copy_(stored);
  };
  return {get, [this](const std::string& original) { return tensors_.has(stored_name(original)); }};
}

}  // namespace parity
