#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "dump/tensor_set_formats.hpp"

namespace parity {
namespace {

using std::filesystem::path;

constexpr std::string_view kIndex = ".safetensors.index.json";

// Files below `folder` that can be opened, sorted; links to folders are not followed.
std::vector<path> files_below(const path& folder, size_t& others) {
  std::vector<path> files;
  std::error_code problem;
  using Walk = std::filesystem::recursive_directory_iterator;
  for (Walk at(folder, problem), end; !problem && at != end; at.increment(problem)) {
    if (!at->is_regular_file(problem)) continue;
    const bool other_json = at->path().extension() == ".json" && !at->path().filename().string().ends_with(kIndex) &&
                            !is_tool_json(at->path());
    TensorSet::fits(at->path()) && !other_json ? files.push_back(at->path()) : void(++others);
  }
  if (problem) throw Error(fmt::format("{}: cannot be listed ({})", folder.string(), problem.message()));
  std::sort(files.begin(), files.end());
  return files;
}

class FolderSet final : public TensorSet {
 public:
  FolderSet(const path& folder, const std::vector<path>& files, size_t others) : TensorSet(folder) {
    for (const path& file : files) {
      parts_.push_back(TensorSet::open(file));
      const TensorSet& part = *parts_.back();
      const std::string base = file.lexically_relative(folder).replace_extension().generic_string();
      for (const std::string& name : part.names()) {
        const auto& [dtype, shape] = part.type(name);
        add(file.extension() == ".npy" ? base : base + "." + name, dtype, shape);
        sources_.emplace_back(parts_.size() - 1, name);
      }
      for (const std::string& text : part.notes()) note(fmt::format("{}: {}", base, text));
    }
    if (others > 0) note(fmt::format("left out, being of other formats: {} files", others));
  }

 private:
  at::Tensor read(size_t index) const override {
    const auto& [part, name] = sources_[index];
    return parts_[part]->value(name);
  }

  std::vector<std::unique_ptr<TensorSet>> parts_;
  std::vector<std::pair<size_t, std::string>> sources_;  // part, name in it
};

}  // namespace

std::unique_ptr<TensorSet> open_folder_set(const path& folder) {
  size_t others = 0;
  const std::vector<path> files = files_below(folder, others);
  std::vector<path> indices;  // files that say what the others are
  for (const path& file : files)
    if (file.filename().string().ends_with(kIndex) || is_tool_json(file)) indices.push_back(file);
  if (indices.size() > 1)
    throw Error(fmt::format("{}: holds {} {}; give one of them: {}", folder.string(), indices.size(),
                            is_tool_json(indices[0]) ? "dumps" : "sharded checkpoints", indices[0].string()));
  if (indices.size() == 1) return TensorSet::open(indices[0]);
  if (files.size() == 1) return TensorSet::open(files[0]);
  return std::make_unique<FolderSet>(folder, files, others);
}

}  // namespace parity
