#include "models/wan/checkpoint.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "models/wan/names.hpp"

namespace parity {
namespace {

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

WanCheckpoint::WanCheckpoint(const std::filesystem::path& place) : stored_(place), config_(wan_config(stored_.json())) {
  const bool diffusers = stored_.has("condition_embedder.time_proj.weight");
  if (!diffusers && !stored_.has("time_projection.1.weight"))
    throw Error(
        fmt::format("{}: is not a Wan or SkyReels-V2 transformer (no 'time_projection.1.weight', no "
                    "'condition_embedder.time_proj.weight')",
                    file().string()));
  if (diffusers != config_.diffusers)
    throw Error(fmt::format("{}: the tensors carry {} names, but config.json is of the other kind", file().string(),
                            diffusers ? "diffusers'" : "the originals'"));
  stored_.check(wan_parameters(config_), [this](const std::string& name) { return stored_name(name); });
}

std::string WanCheckpoint::stored_name(const std::string& original) const {
  return diffusers() ? wan_diffusers_name(original) : original;
}

std::string WanCheckpoint::dtype_path() const {
  const auto text = [this](const char* key) {
    const auto found = json().find(key);
    return found != json().end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  if (!diffusers()) return text("dtype_path");
  return text("_class_name") == "SkyReelsV2Transformer3DModel" ? "dsky" : "dwan";
}

WeightSource WanCheckpoint::weights(const WanDtypePath& path, at::ScalarType low) const {
  const auto get = [this, &path, low](const std::string& original) {
    const std::string name = stored_name(original);
    return stored_.load(name, loaded_dtype(path, low, name));
  };
  return {get, [this](const std::string& original) { return stored_.has(stored_name(original)); }};
}

}  // namespace parity
