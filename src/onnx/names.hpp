// Names for the values of a graph: those that parity_probe.engines.onnxruntime records them under
// (probes/python/parity_probe/engines), so that a model and a runtime's recording of it pair by name.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "onnx/model.hpp"

namespace parity::onnx {

/// What torch.onnx.export left of modules: in the node's metadata, or (the exporter of old) in its name.
void place_in_modules(Node& node, const std::map<std::string, std::string>& metadata);

struct Names {
  std::vector<std::string> nodes;  // by node: "model.layers.0.mlp/Mul.0", of its own name where no module is known
  std::map<std::string, std::vector<std::string>> modules;  // value -> modules whose only output it is, innermost first
};

Names names_of(const Graph& graph);

/// A module with several results of which the graph uses one: a recording of the module itself calls that `path[1]`,
/// say. So does `names` from here on where the candidate's tensor `path` has another shape than the value, `shape`, and
/// just one of its further results has that one. `recorded` gives the candidate's shapes by path.
using ShapeOf = std::function<std::optional<std::vector<int64_t>>(const std::string&)>;
void name_further_results(Names& names, const ShapeOf& shape, const ShapeOf& recorded);

/// "a.b.c" -> "a.b"; "a" -> "".
std::string outer_module(const std::string& module);

}  // namespace parity::onnx
