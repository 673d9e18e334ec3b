// An ONNX model run once on given inputs, node by node through ATen, and what ran: the recorded program of it.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "onnx/names.hpp"
#include "trace/capture.hpp"

namespace parity::onnx {

using Inputs = std::map<std::string, at::Tensor>;  // by the graph's names

/// What somebody recorded under a path in a call; nullopt: nothing.
using RecordedValue = std::function<std::optional<at::Tensor>(const std::string& path, int call)>;

/// One node in one run.
struct NodeRun {
  size_t node = 0;
  std::vector<CapturedOp> ops;
  std::vector<nlohmann::json> inputs;   // values
  std::vector<nlohmann::json> outputs;  // by output: a value, or null where there is none
};

struct ModelRun {
  std::vector<nlohmann::json> inputs, outputs;  // values with their names ("n")
  std::vector<NodeRun> nodes;                   // in the graph's order
};

struct Leaf {
  at::Tensor tensor;
  std::vector<std::string> names;  // "weights/…", "inputs/…"
};

struct RanModel {
  std::vector<ModelRun> runs;
  std::map<int64_t, Leaf> leaves;      // by id: what no op made
  std::map<int64_t, at::Tensor> kept;  // by id: results to store, which a replay cannot compute
  std::vector<std::string> notes;      // for people: operators that are not known here
};

/// Runs the graph on each of `inputs`, then leaves out every op that no output is computed from. An operator that is
/// not known here is taken from `recorded`. Throws Error naming the file and the node: an input that is missing or does
/// not fit, an operator that is not known and not recorded either, a value that nothing gives, what ATen refuses.
RanModel run_model(const std::filesystem::path& file, const Model& model, const Names& names,
                   const std::vector<Inputs>& inputs, const RecordedValue& recorded);

/// A given tensor as the graph's input: in its dtype, in memory of its own. Throws Error where dtype class or shape do
/// not fit.
at::Tensor fitted(const std::filesystem::path& file, const GraphInput& input, const at::Tensor& given);

/// Every op that no output is computed from. Exporters leave chains of integers that only told a shape: their numbers
/// stand in the ops as literals. Throws Error for an op that reads uninitialised memory.
void leave_out_unused(const std::filesystem::path& file, RanModel& ran);

}  // namespace parity::onnx
