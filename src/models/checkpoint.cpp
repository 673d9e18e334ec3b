#include "models/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <set>

#include "core/error.hpp"
#include "dump/safetensors.hpp"
#include "dump/tensor_set.hpp"

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
  const std::vector<std::string> shown(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(names.size(), 3)));
  const std::string text = fmt::format("{}", fmt::join(shown, ", "));
  return names.size() > 3 ? fmt::format("{} and {} more", text, names.size() - 3) : text;
}

}  // namespace

Checkpoint::Checkpoint(const path& place) : file_(weight_file(place)) {
  if (file_.extension() == ".pth") {
    read_state_dict();
  } else {
    json_ = read_config(file_);
    read_safetensors();
  }
}

void Checkpoint::read_safetensors() {
  const auto set = std::make_shared<const Safetensors>(file_);
  for (const std::string& name : set->names())
    tensors_[name] = {set->shape(name), [set, name] { return set->tensor(name); }};
}

void Checkpoint::read_state_dict() {
  const std::shared_ptr<const TensorSet> set = TensorSet::open(file_);
  for (const std::string& name : set->names())
    tensors_[name] = {set->type(name).second, [set, name] { return set->value(name); }};
}

const Checkpoint::Stored& Checkpoint::stored(const std::string& stored_name) const {
  const auto found = tensors_.find(stored_name);
  if (found == tensors_.end()) throw Error(fmt::format("{}: lacks '{}'", file_.string(), stored_name));
  return found->second;
}

const std::vector<int64_t>& Checkpoint::shape(const std::string& stored_name) const {
  return stored(stored_name).shape;
}

void Checkpoint::take_apart(const std::string& stored_name, int64_t parts, const std::vector<int64_t>& shape) {
  const auto found = tensors_.find(stored_name);
  if (found == tensors_.end() || c10::multiply_integers(found->second.shape) != parts * c10::multiply_integers(shape))
    return;
  const Stored whole = std::move(found->second);
  tensors_.erase(found);
  for (int64_t part = 0; part < parts; ++part)
    tensors_[fmt::format("{}[{}]", stored_name, part)] = {
        shape, [whole, parts, part, shape] { return whole.value().flatten().chunk(parts)[part].reshape(shape); }};
}

void Checkpoint::check(const Parameters& parameters, const StoredName& stored_name,
                       const std::function<bool(const std::string&)>& surplus) const {
  const std::string config = json_.is_null() ? "its configuration" : "config.json";
  std::vector<std::string> missing, extra, wrong;
  std::set<std::string> known;
  for (const auto& [original, made] : parameters) {
    const std::string name = stored_name(original);
    known.insert(name);
    if (!has(name))
      missing.push_back("'" + name + "'");
    else if (shape(name) != made)
      wrong.push_back(fmt::format("tensor '{}' is [{}], {} makes it [{}]", name, fmt::join(shape(name), ", "), config,
                                  fmt::join(made, ", ")));
  }
  for (const auto& [name, stored] : tensors_)
    if (!known.contains(name) && !surplus(name)) extra.push_back("'" + name + "'");
  std::vector<std::string> complaints;
  if (!wrong.empty()) complaints.push_back(some_of(wrong));
  if (!missing.empty()) complaints.push_back(fmt::format("lacks {}, which {} makes", some_of(missing), config));
  if (!extra.empty()) complaints.push_back(fmt::format("holds {}, which {} does not make", some_of(extra), config));
  if (!complaints.empty())
    throw Error(fmt::format("{}: {}{}", file_.string(), fmt::join(complaints, "; "),
                            json_.is_null() ? "" : "; is it the config.json of this checkpoint?"));
}

at::Tensor Checkpoint::load(const std::string& stored_name, at::ScalarType dtype) const {
  const at::Tensor value = stored(stored_name).value();
  if (!value.is_floating_point())
    throw Error(fmt::format("{}: tensor '{}' holds no floating-point numbers", file_.string(), stored_name));
  return at::empty(value.sizes(), dtype).copy_(value);
}

}  // namespace parity
