#include "models/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "core/error.hpp"

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

}  // namespace

Checkpoint::Checkpoint(const path& place) : file_(weight_file(place)), json_(read_config(file_)), tensors_(file_) {}

void Checkpoint::check(const Parameters& parameters, const StoredName& stored_name,
                       const std::function<bool(const std::string&)>& surplus) const {
  std::vector<std::string> missing, extra;
  std::set<std::string> known;
  for (const auto& [original, shape] : parameters) {
    const std::string name = stored_name(original);
    known.insert(name);
    if (!tensors_.has(name))
      missing.push_back(name);
    else if (tensors_.shape(name) != shape)
      throw Error(fmt::format("{}: tensor '{}' is [{}], config.json makes it [{}]", file_.string(), name,
                              fmt::join(tensors_.shape(name), ", "), fmt::join(shape, ", ")));
  }
  for (const std::string& name : tensors_.names())
    if (!known.contains(name) && !surplus(name)) extra.push_back(name);
  if (!missing.empty())
    throw Error(fmt::format("{}: lacks {}, which config.json makes; is it the config.json of this checkpoint?",
                            file_.string(), some_of(missing)));
  if (!extra.empty())
    throw Error(fmt::format("{}: holds {}, which config.json does not make; is it the config.json of this checkpoint?",
                            file_.string(), some_of(extra)));
}

at::Tensor Checkpoint::load(const std::string& stored_name, at::ScalarType dtype) const {
  const at::Tensor stored = tensors_.tensor(stored_name);
  if (!stored.is_floating_point())
    throw Error(fmt::format("{}: tensor '{}' holds no floating-point numbers", file_.string(), stored_name));
  return at::empty(stored.sizes(), dtype).copy_(stored);
}

}  // namespace parity
