#include "onnx/program.hpp"

#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <set>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "onnx/operator.hpp"
#include "trace/encode.hpp"
#include "trace/execute.hpp"

namespace parity::onnx {
namespace {

using nlohmann::json;

class Runner {
 public:
  Runner(const std::filesystem::path& file, const Model& model, const Names& names, const RecordedValue& recorded)
      : file_(file), model_(model), names_(names), recorded_(recorded), capture_([this](CapturedOp op) {
          take(std::move(op));
        }) {
    for (size_t i = 0; i < model.graph.nodes.size(); ++i)
      for (const std::string& value : model.graph.nodes[i].inputs) last_use_[value] = i;
    for (const auto& node : model.graph.nodes)  // what a branch reads from around it stays to the end
      for (const auto& [name, attribute] : node.attributes)
        if (attribute.graph) keep_names_of(*attribute.graph);
    for (const std::string& value : model.graph.outputs) last_use_[value] = model.graph.nodes.size();
    for (const auto& [name, tensor] : model.graph.initializers)
      if (tensor.defined()) ran_.leaves[capture_.id_of(tensor)] = {tensor, {"weights/" + name}};
  }

  void run(const Inputs& inputs) {
    const Graph& graph = model_.graph;
    values_ = graph.initializers;
    ran_.runs.emplace_back();
    for (const GraphInput& input : graph.inputs) give(input, inputs);
    for (size_t i = 0; i < graph.nodes.size(); ++i) run_node(i);
    for (const std::string& name : graph.outputs) {
      const at::Tensor& value = read(name);
      json output = encode_value(known(value), value);
      output["n"] = name;
      ran_.runs.back().outputs.push_back(std::move(output));
      ran_.kept.emplace(known(value), value);
    }
  }

  RanModel result() {
    leave_out_unused(file_, ran_);
    return std::move(ran_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(fmt::format("{}: {}", file_.string(), what)); }

  static std::string words(const Node& node) {
    const std::string kind = node.domain.empty() ? node.kind : node.domain + "." + node.kind;
    return node.name.empty() ? "a node " + kind : fmt::format("node '{}' ({})", node.name, kind);
  }

  void keep_names_of(const Graph& graph) {
    for (const Node& node : graph.nodes)
      for (const std::string& value : node.inputs) last_use_[value] = model_.graph.nodes.size();
    for (const std::string& value : graph.outputs) last_use_[value] = model_.graph.nodes.size();
  }

  void give(const GraphInput& input, const Inputs& inputs) {
    const auto found = inputs.find(input.name);
    if (found == inputs.end())
      fail(fmt::format(
          "its input '{}' ({}) is given neither by the candidate nor by --inputs FILE (.npz, .safetensors, …, "
          "tensors by the names of the model's inputs)",
          input.name, dtype_name(input.dtype)));
    const at::Tensor value = fitted(file_, input, found->second);
    const int64_t id = capture_.id_of(value);
    ran_.leaves[id] = {value, {fmt::format("inputs/{}/{}", ran_.runs.size() - 1, input.name)}};
    json named = encode_value(id, value);
    named["n"] = input.name;
    ran_.runs.back().inputs.push_back(std::move(named));
    values_[input.name] = value;
  }

  const at::Tensor& read(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) fail(fmt::format("value '{}' is read, and nothing before gives it", name));
    if (!found->second.defined()) fail(fmt::format("value '{}' is no tensor of numbers", name));
    return found->second;
  }

  // What no op made is a leaf.
  int64_t known(const at::Tensor& tensor) {
    const int64_t id = capture_.id_of(tensor);
    if (!made_.contains(id)) ran_.leaves.try_emplace(id, Leaf{tensor, {}});
    return id;
  }

  void take(CapturedOp op) {
    for (const int64_t id : op.reads) known(capture_.tensor(id));
    made_.insert(op.makes.begin(), op.makes.end());
    if (op.dynamic)
      for (json& value : op.event["out"])
        if (value.is_object()) store(value);
    current_->ops.push_back(std::move(op));
  }

  void store(json& value) {
    const int64_t id = value["v"].get<int64_t>();
    value["k"] = std::to_string(id);
    ran_.kept.emplace(id, capture_.tensor(id));
  }

  void run_node(size_t index) {
    const Node& node = model_.graph.nodes[index];
    NodeRun run;
    run.node = index;
    current_ = &run;
    Tensors results;
    try {
      results = find_lowering(node) == nullptr && node.kind != "If" ? opaque(index) : lowered(node);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      fail(fmt::format("{}: {}", words(node), complaint(error)));
    }
    for (const std::string& name : node.inputs)
      if (!name.empty()) run.inputs.push_back(encode_value(known(read(name)), read(name)));
    for (size_t j = 0; j < node.outputs.size(); ++j) {
      const bool given = !node.outputs[j].empty() && j < results.size() && results[j].defined();
      run.outputs.push_back(given ? encode_value(known(results[j]), results[j]) : json());
    }
    ran_.runs.back().nodes.push_back(std::move(run));
    forget(index, ran_.runs.back().nodes.back());
  }

  // A node, or one inside a branch: its results are values from here on.
  Tensors lowered(const Node& node) {
    Tensors results = node.kind == "If" && node.domain.empty() ? branch(node) : computed(node);
    for (size_t j = 0; j < node.outputs.size(); ++j)
      if (!node.outputs[j].empty() && j < results.size()) values_[node.outputs[j]] = results[j];
    return results;
  }

  Tensors computed(const Node& node) {
    const Lowering lowering = find_lowering(node);
    if (lowering == nullptr) throw Error(fmt::format("operator {} is not known here", node.kind));
    Tensors inputs, results;
    std::vector<bool> constant;
    for (const std::string& name : node.inputs) {
      inputs.push_back(name.empty() ? at::Tensor() : read(name));
      constant.push_back(constants_.contains(name) || model_.graph.initializers.contains(name));
    }
    if (node.kind == "Constant")
      for (const std::string& name : node.outputs) constants_.insert(name);
    const Call call(node, std::move(inputs), std::move(constant), model_.opset);
    capture_.during([&] { results = lowering(call); });
    return results;
  }

  // Which branch runs is what the given inputs make of it.
  Tensors branch(const Node& node) {
    const at::Tensor& condition = read(node.inputs.empty() ? "" : node.inputs[0]);
    if (condition.numel() != 1) throw Error("its condition is not one number");
    const auto graph = node.attributes.find(condition.item<bool>() ? "then_branch" : "else_branch");
    if (graph == node.attributes.end() || !graph->second.graph) throw Error("its branch is missing");
    for (const auto& [name, tensor] : graph->second.graph->initializers) values_[name] = tensor;
    for (const Node& inner : graph->second.graph->nodes) lowered(inner);
    Tensors results;
    for (const std::string& name : graph->second.graph->outputs) results.push_back(read(name));
    return results;
  }

  // An operator that is not known here: its results as the candidate has them.
  Tensors opaque(size_t index) {
    const Node& node = model_.graph.nodes[index];
    const std::string place = node.domain.empty() ? "onnx" : node.domain;
    CapturedOp op;
    op.event = {{"e", "op"},
                {"op", place + "::" + node.kind},
                {"args", json::array()},
                {"out", json::array()},
                {"opaque", "custom"}};
    for (const std::string& name : node.inputs) {
      if (!name.empty()) op.reads.push_back(known(read(name)));
      op.event["args"].push_back(name.empty() ? json() : json{{"v", op.reads.back()}});
    }
    Tensors results;
    for (size_t j = 0; j < node.outputs.size(); ++j) {
      if (node.outputs[j].empty()) continue;
      results.resize(j + 1);
      results[j] = recorded_output(index, j).clone();
      const int64_t id = capture_.id_of(results[j]);
      op.makes.push_back(id);
      op.event["out"].push_back(encode_value(id, results[j]));
      store(op.event["out"].back());
      values_[node.outputs[j]] = results[j];
    }
    ran_.notes.push_back(
        fmt::format("operator {} of ONNX is not known here: what the candidate has of {} was taken for "
                    "right, and is not judged",
                    node.kind, names_.nodes[index]));
    take(std::move(op));
    return results;
  }

  at::Tensor recorded_output(size_t index, size_t output) const {
    const Node& node = model_.graph.nodes[index];
    std::vector<std::string> paths;
    if (const auto modules = names_.modules.find(node.outputs[output]); modules != names_.modules.end())
      paths = modules->second;
    paths.push_back(names_.nodes[index] + (output == 0 ? "" : fmt::format("[{}]", output)));
    for (const std::string& path : paths)
      if (auto value = recorded_(path, static_cast<int>(ran_.runs.size()) - 1)) return *std::move(value);
    throw Error(fmt::format("the operator is not known here, and the candidate has no value '{}' to take in its place",
                            paths.back()));
  }

  // Drops what no later node reads.
  void forget(size_t index, const NodeRun& run) {
    std::set<const c10::TensorImpl*> needed;
    const Node& node = model_.graph.nodes[index];
    std::set<int64_t> dropped;
    for (const CapturedOp& op : run.ops) dropped.insert(op.makes.begin(), op.makes.end());
    for (const auto& names : {node.inputs, node.outputs})
      for (const std::string& name : names) {
        const auto value = values_.find(name);
        if (value == values_.end() || model_.graph.initializers.contains(name)) continue;
        const auto last = last_use_.find(name);
        if (last != last_use_.end() && last->second > index) continue;
        if (value->second.defined()) dropped.insert(capture_.id_of(value->second));
        values_.erase(value);
      }
    for (const auto& [name, tensor] : values_) needed.insert(tensor.unsafeGetTensorImpl());
    for (const int64_t id : dropped)
      if (!ran_.leaves.contains(id) && !ran_.kept.contains(id) &&
          !needed.contains(capture_.tensor(id).unsafeGetTensorImpl()))
        capture_.forget(id);
  }

  const std::filesystem::path& file_;
  const Model& model_;
  const Names& names_;
  const RecordedValue& recorded_;
  Capture capture_;
  RanModel ran_;
  NodeRun* current_ = nullptr;
  std::map<std::string, at::Tensor> values_;
  std::map<std::string, size_t> last_use_;  // by value: the last node that reads it
  std::set<std::string> constants_;         // values that the model states
  std::set<int64_t> made_;                  // by ops
};

}  // namespace

RanModel run_model(const std::filesystem::path& file, const Model& model, const Names& names,
                   const std::vector<Inputs>& inputs, const RecordedValue& recorded) {
  const c10::InferenceMode inference;
  Runner runner(file, model, names, recorded);
  for (const Inputs& run : inputs) runner.run(run);
  return runner.result();
}

}  // namespace parity::onnx
