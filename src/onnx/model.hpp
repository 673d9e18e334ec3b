// An ONNX model in memory, as far as running its graph needs it. No protobuf here.
#pragma once
#include <ATen/ATen.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace parity::onnx {

struct Graph;

/// An attribute of a node: one of these, by what the operator asks for.
struct Attribute {
  std::optional<int64_t> integer;
  std::optional<double> number;  // ONNX stores float32
  std::optional<std::string> text;
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  std::vector<std::string> texts;
  at::Tensor tensor;
  std::shared_ptr<Graph> graph;
};

/// One application of an operator. An input or output that is left out has the name "".
struct Node {
  std::string kind, domain, name;  // "MatMul", "" for ONNX's own, the node's own name or ""
  std::vector<std::string> inputs, outputs;
  std::map<std::string, Attribute> attributes;
  std::optional<std::string> module;  // path of the module in whose call the exporter met it, where it says so
  std::vector<std::string> classes;   // of that module and those around it, outermost first; mostly empty
};

struct GraphInput {
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::optional<std::vector<int64_t>> shape;  // -1: any; nullopt: of any rank
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;         // each reads what came before it
  std::vector<GraphInput> inputs;  // without those that an initializer gives
  std::vector<std::string> outputs;
  std::map<std::string, at::Tensor> initializers;
};

struct Model {
  Graph graph;
  std::string producer;  // "pytorch 2.13.0"
  int64_t opset = 0;     // of ONNX's own operators
};

/// Is it called so (".onnx")?
bool is_model_file(const std::filesystem::path& file);

/// Reads `file` and the files with its weights that it names, which must lie in its folder or below. Throws Error, one
/// line: missing, truncated, no ONNX model, a tensor whose bytes do not fit its shape, an opset before 13, ….
Model read_model(const std::filesystem::path& file);

}  // namespace parity::onnx
