#include "jobs/onnx_side.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "onnx/reference.hpp"

namespace parity {
namespace {

using onnx::Inputs;

// A port's recorder writes points with the role "input", PyTorch's keeps what each call of the model was given.
std::vector<Inputs> inputs_of(const Dump& dump) {
  std::map<int64_t, Inputs> calls;
  for (const nlohmann::json& event : dump.events())
    if (event.value("e", "") == "point" && event.value("role", "") == "input" && event.contains("k"))
      calls[event.value("call", int64_t{0})].emplace(event.value("path", ""), dump.value(event.value("k", "")));
  for (int call = 0; !dump.input_names(call).empty(); ++call)
    for (const std::string& name : dump.input_names(call)) calls[call].emplace(name, dump.input(name, call));
  std::vector<Inputs> runs;
  for (auto& [call, inputs] : calls) runs.push_back(std::move(inputs));
  return runs;
}

// Only what the model asks for is read; a set has no roles.
std::vector<Inputs> inputs_of(const TensorSet& set) {
  Inputs inputs;
  for (const std::string& name : set.names()) inputs.emplace(name, set.value(name));
  return {std::move(inputs)};
}

std::vector<Inputs> given(const OpenedSide& candidate, const std::filesystem::path& file) {
  std::vector<Inputs> runs;
  if (!file.empty())
    runs = TensorSet::fits(file) ? inputs_of(*TensorSet::open(file)) : inputs_of(Dump(file));
  else
    runs = candidate.set ? inputs_of(*candidate.set) : inputs_of(*candidate.dump);
  if (runs.empty()) runs.emplace_back();  // a model may have none
  return runs;
}

}  // namespace

OpenedSide open_onnx_side(const std::filesystem::path& file, const OpenedSide& candidate,
                          const std::filesystem::path& inputs) {
  const auto value = [&](const std::string& path, int call) -> std::optional<at::Tensor> {
    for (const CandidateTensor& tensor : candidate.tensors)
      if (tensor.path == path && tensor.call == call) return tensor.load();
    return std::nullopt;
  };
  const auto shape = [&](const std::string& path) -> std::optional<std::vector<int64_t>> {
    for (const CandidateTensor& tensor : candidate.tensors)
      if (tensor.path == path && tensor.call == 0) return tensor.shape;
    return std::nullopt;
  };
  onnx::Reference reference = onnx::open_reference(file, given(candidate, inputs), {value, shape});
  OpenedSide side;
  side.file = file;
  side.dump = std::move(reference.dump);
  side.notes = std::move(reference.notes);
  side.program = load_program(*side.dump);
  side.tensors = tensors_of(*side.dump, side.program);
  return side;
}

}  // namespace parity
