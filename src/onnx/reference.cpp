#include "onnx/reference.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "core/error.hpp"
#include "onnx/recording.hpp"

namespace parity::onnx {
namespace {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "parity-onnx-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw Error(fmt::format("{}: no temporary folder can be made; set TMPDIR", name));
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

ShapeOf shapes_of(const Model& model, const ModelRun& run) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const NodeRun& node : run.nodes)
    for (size_t j = 0; j < node.outputs.size(); ++j)
      if (node.outputs[j].is_object())
        shapes[model.graph.nodes[node.node].outputs[j]] = node.outputs[j]["s"].get<std::vector<int64_t>>();
  return [shapes = std::move(shapes)](const std::string& value) -> std::optional<std::vector<int64_t>> {
    const auto found = shapes.find(value);
    return found == shapes.end() ? std::nullopt : std::optional(found->second);
  };
}

}  // namespace

Reference open_reference(const std::filesystem::path& file, const std::vector<Inputs>& inputs,
                         const Recorded& recorded) {
  const Model model = read_model(file);
  Names names = names_of(model.graph);
  RanModel ran = run_model(file, model, names, inputs, recorded.value);
  name_further_results(names, shapes_of(model, ran.runs.front()), recorded.shape);
  const TemporaryFolder folder;  // an open file needs no name: nothing is left behind, whatever happens from here on
  const std::filesystem::path recording = folder.path() / "recording.h5";
  write_recording(recording, file, model, names, ran);
  return {std::make_unique<Dump>(recording, file), std::move(ran.notes)};
}

}  // namespace parity::onnx
