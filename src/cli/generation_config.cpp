#include "cli/generation_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "core/error.hpp"
#include "jobs/sides.hpp"

namespace parity::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> embedded_names() {
  std::vector<std::string> names;
  const fs::path folder = fs::path(embedded_dumps_folder()) / "pipelines";
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// The file that says how to generate; "" for a pipeline's folder itself.
fs::path config_file(const std::string& config) {
  const fs::path place(config);
  if (fs::is_regular_file(place)) return place;
  if (fs::is_directory(place)) return "";
  const fs::path embedded = fs::path(embedded_dumps_folder()) / "pipelines" / place / "generation.json";
  if (!config.empty() && place.filename() == place && fs::is_regular_file(embedded)) return embedded;
  throw Error(fmt::format("{}: is no folder of a pipeline, no JSON file and none of the embedded ones ({})", config,
                          fmt::join(embedded_names(), ", ")));
}

using Setters = std::map<std::string, std::function<void(const nlohmann::json&)>>;

template <class T>
std::function<void(const nlohmann::json&)> into(T& target) {
  return [&target](const nlohmann::json& value) { target = value.get<T>(); };
}

// A path that is relative to the file.
std::function<void(const nlohmann::json&)> into_path(std::string& target, const fs::path& file) {
  return [&target, folder = file.parent_path()](const nlohmann::json& value) {
    target = (folder / value.get<std::string>()).string();
  };
}

Setters setters(GenerateOptions& o, const fs::path& file) {
  auto& g = o.generation;
  return {{"pipeline", into_path(o.pipeline, file)},
          {"inputs", into_path(o.inputs, file)},
          {"reference", into_path(o.reference, file)},
          {"settings", into(o.settings)},
          {"steps", into(g.steps)},
          {"guidance", into(g.guidance)},
          {"teacache", into(g.teacache)},
          {"frames", into(g.frames)},
          {"height", into(g.height)},
          {"width", into(g.width)},
          {"seed", into(g.seed)},
          {"dtype", into(o.dtype)},
          {"vae_dtype", into(o.vae_dtype)},
          {"rate", into(o.rate)}};
}

bool said_on_command_line(const CLI::App& command, std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  const CLI::Option* option = command.get_option_no_throw("--" + key);
  return option && option->count() > 0;
}

void read_config(GenerateOptions& o, const CLI::App& command, const fs::path& file) {
  std::ifstream stream(file);
  const auto config = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object() || !config.contains("pipeline"))
    throw Error(fmt::format("{}: is not a JSON object with 'pipeline', the folder of one", file.string()));
  const Setters known = setters(o, file);
  for (const auto& [key, value] : config.items()) {
    const auto setter = known.find(key);
    if (setter == known.end()) throw Error(fmt::format("{}: has an unknown key '{}'", file.string(), key));
    if (said_on_command_line(command, key)) continue;
    try {
      setter->second(value);
    } catch (const nlohmann::json::exception&) {
      throw Error(fmt::format("{}: '{}' is {}, which is not what belongs there", file.string(), key, value.dump()));
    }
  }
}

}  // namespace

void complete_from_config(GenerateOptions& o, const CLI::App& command) {
  const fs::path file = config_file(o.config);
  if (file.empty())
    o.pipeline = o.config;
  else
    read_config(o, command, file);
  if (o.inputs.empty()) throw Error("name the tensors to begin from with --inputs (input_ids, attention_mask, …)");
}

}  // namespace parity::cli
