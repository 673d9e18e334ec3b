#include "onnx/recording.hpp"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "dump/dump_writer.hpp"
#include "trace/encode.hpp"
#include "trace/machine.hpp"

namespace parity::onnx {
namespace {

using nlohmann::json;

json provenance_of(const Model& model) {
  const Machine here = this_machine();
  json flags = json::array();
  std::istringstream words(here.cpu_flags);
  for (std::string flag; words >> flag;) flags.push_back(flag);
  return {{"torch", here.libtorch},
          {"cpu", here.cpu},
          {"cpu_capability", here.cpu_capability},
          {"cpu_flags", std::move(flags)},
          {"mkldnn", at::globalContext().userEnabledMkldnn()},
          {"threads", here.threads},
          {"onnx", {{"producer", model.producer}, {"opset", model.opset}}}};
}

std::string last_of(const std::string& dotted) { return dotted.substr(dotted.rfind('.') + 1); }

/// The calls of one run: of the model, its modules and its nodes.
class RunWriter {
 public:
  RunWriter(DumpWriter& writer, const Model& model, const Names& names, const RanModel& ran, size_t run)
      : writer_(writer), model_(model), names_(names), ran_(ran), run_(ran.runs[run]), number_(static_cast<int>(run)) {
    for (size_t i = 0; i < model.graph.nodes.size(); ++i)
      if (const Node& node = model.graph.nodes[i]; node.module)
        for (std::string module = *node.module; !module.empty(); module = outer_module(module)) last_[module] = i;
  }

  /// `serial`: the next free one of calls. `told`: ids that the recording has defined.
  void write(int64_t& serial, std::set<int64_t>& told) {
    serial_ = &serial, told_ = &told;
    for (const json& input : run_.inputs) tell(input["v"].get<int64_t>());
    root_ = begin("", -1, model_.graph.name.empty() ? "ONNX graph" : model_.graph.name, run_.inputs);
    for (const NodeRun& node : run_.nodes) write_node(node);
    for (const auto& [module, call] : open_) end(call, json::array());
    json outputs = json::array();
    for (const json& output : run_.outputs) outputs.push_back(stored(output));
    for (const json& output : outputs) point(output["n"].get<std::string>(), output);
    end(root_, std::move(outputs));
  }

 private:
  // A leaf is written when it is first needed.
  void tell(int64_t id) {
    if (!told_->insert(id).second) return;
    const auto leaf = ran_.leaves.find(id);
    if (leaf == ran_.leaves.end()) return;
    const std::string key = std::to_string(id);
    writer_.value(key, leaf->second.tensor);
    json event = encode_value(id, leaf->second.tensor);
    event.update({{"e", "leaf"}, {"k", key}, {"names", leaf->second.names}});
    writer_.event(event);
    for (const std::string& name : leaf->second.names) {
      const size_t slash = name.starts_with("inputs/") ? name.find('/', 7) : name.find('/');
      writer_.link(name.substr(0, slash), name.substr(slash + 1), key);
    }
  }

  json stored(json value) {
    const int64_t id = value["v"].get<int64_t>();
    tell(id);
    const auto kept = ran_.kept.find(id);
    if (kept == ran_.kept.end()) return value;
    value["k"] = std::to_string(id);
    writer_.value(value["k"].get<std::string>(), kept->second);
    if (value.contains("n"))
      writer_.link(fmt::format("outputs/{}", number_), value["n"].get<std::string>(), value["k"].get<std::string>());
    return value;
  }

  int64_t begin(const std::string& path, int64_t parent, const std::string& type, const std::vector<json>& inputs) {
    const int64_t serial = (*serial_)++;
    writer_.event({{"e", "call"},
                   {"id", serial},
                   {"path", path},
                   {"call", number_},
                   {"parent", parent},
                   {"class", type},
                   {"inputs", inputs},
                   {"literals", json::object()},
                   {"autocast", nullptr},
                   {"grad", false}});
    return serial;
  }

  void end(int64_t serial, json outputs) {
    writer_.event({{"e", "ret"}, {"id", serial}, {"outputs", std::move(outputs)}});
  }

  void point(const std::string& path, json value) {
    value.update({{"e", "point"}, {"path", path}, {"call", number_}, {"role", "output"}});
    writer_.event(value);
  }

  // The call of a node's module, begun with those around it.
  int64_t module_call(const Node& node, const std::string& module) {
    if (module.empty()) return root_;
    const auto found = called_.find(module);
    if (found != called_.end()) return found->second;
    const int64_t parent = module_call(node, outer_module(module));
    const bool own = node.module == module && !node.classes.empty();
    const int64_t serial = begin(module, parent, own ? last_of(node.classes.back()) : "", {});
    called_[module] = open_[module] = serial;
    return serial;
  }

  void write_node(const NodeRun& run) {
    const Node& node = model_.graph.nodes[run.node];
    if (!run.ops.empty()) {
      for (const CapturedOp& op : run.ops)
        for (const int64_t id : op.reads)
          if (ran_.leaves.contains(id)) tell(id);
      std::vector<json> inputs;
      for (const json& input : run.inputs)
        if (told_->contains(input["v"].get<int64_t>())) inputs.push_back(input);
      const int64_t serial =
          begin(names_.nodes[run.node], module_call(node, node.module.value_or("")), node.kind, inputs);
      for (const CapturedOp& op : run.ops) write_op(op, serial);
      finish(run, serial);
    } else {  // its result is its operand, under a name of its own
      for (size_t j = 0; j < run.outputs.size(); ++j)
        if (is_told(run.outputs[j]) && !ran_.leaves.contains(run.outputs[j]["v"].get<int64_t>()))
          point(j == 0 ? names_.nodes[run.node] : fmt::format("{}[{}]", names_.nodes[run.node], j), run.outputs[j]);
    }
    end_modules(run);
  }

  void write_op(const CapturedOp& op, int64_t serial) {
    json event = op.event;
    event["in"] = serial;
    for (json& value : event["out"])
      if (value.is_object()) {
        told_->insert(value["v"].get<int64_t>());
        if (value.contains("k")) value = stored(value);
      }
    writer_.event(event);
  }

  // Results after one that is left out keep their number.
  void finish(const NodeRun& run, int64_t serial) {
    json outputs = json::array();
    for (size_t j = 0; j < run.outputs.size(); ++j) {
      if (!is_told(run.outputs[j])) continue;
      if (outputs.size() == j)
        outputs.push_back(run.outputs[j]);
      else
        point(fmt::format("{}[{}]", names_.nodes[run.node], j), run.outputs[j]);
    }
    end(serial, std::move(outputs));
  }

  bool is_told(const json& value) const { return value.is_object() && told_->contains(value["v"].get<int64_t>()); }

  // A module ends with its last node; should it hand on its result before, that has its name at once.
  void end_modules(const NodeRun& run) {
    const Node& node = model_.graph.nodes[run.node];
    for (size_t j = 0; j < node.outputs.size() && j < run.outputs.size(); ++j) {
      const auto modules = names_.modules.find(node.outputs[j]);
      if (modules == names_.modules.end() || !is_told(run.outputs[j])) continue;
      for (const std::string& module : modules->second) {
        if (last_[module] == run.node && open_.contains(module)) {
          end(open_[module], json::array({run.outputs[j]}));
          open_.erase(module);
        } else {
          point(module, run.outputs[j]);
        }
      }
    }
    for (std::string module = node.module.value_or(""); !module.empty(); module = outer_module(module))
      if (last_[module] == run.node && open_.contains(module)) {
        end(open_[module], json::array());
        open_.erase(module);
      }
  }

  DumpWriter& writer_;
  const Model& model_;
  const Names& names_;
  const RanModel& ran_;
  const ModelRun& run_;
  int number_;
  int64_t root_ = -1, *serial_ = nullptr;
  std::set<int64_t>* told_ = nullptr;
  std::map<std::string, size_t> last_;            // by module: its last node
  std::map<std::string, int64_t> called_, open_;  // module -> serial of its call
};

}  // namespace

void write_recording(const std::filesystem::path& to, const std::filesystem::path& file, const Model& model,
                     const Names& names, const RanModel& ran) {
  DumpWriter writer(to, {"module", model.producer.empty() ? "ONNX" : "ONNX, " + model.producer, file.stem().string(),
                         provenance_of(model)});
  int64_t serial = 0;
  std::set<int64_t> told;
  for (size_t run = 0; run < ran.runs.size(); ++run) RunWriter(writer, model, names, ran, run).write(serial, told);
  writer.close();
}

}  // namespace parity::onnx
