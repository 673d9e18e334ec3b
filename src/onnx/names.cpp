#include "onnx/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

namespace parity::onnx {
namespace {

constexpr char kScopes[] = "pkg.torch.onnx.name_scopes", kClasses[] = "pkg.torch.onnx.class_hierarchy";

// The strings of a Python list as `repr` writes it: ['', 'model.layers.0', 'mm'].
std::vector<std::string> python_list(const std::string& text) {
  std::vector<std::string> items;
  for (size_t at = 0; at < text.size(); ++at) {
    const char quote = text[at];
    if (quote != '\'' && quote != '"') continue;
    std::string item;
    for (++at; at < text.size() && text[at] != quote; ++at) {
      if (text[at] == '\\' && at + 1 < text.size()) ++at;
      item += text[at];
    }
    items.push_back(std::move(item));
  }
  return items;
}

// "/model/layers.0/self_attn/q_proj/MatMul" -> "model.layers.0.self_attn.q_proj"
std::string module_in_name(const std::string& name) {
  const size_t last = name.rfind('/');
  std::string module = last == 0 ? "" : name.substr(1, last - 1);
  std::replace(module.begin(), module.end(), '/', '.');
  return module;
}

using Module = std::optional<std::string>;

bool is_inside(const Module& module, const std::string& outer) {
  return module && (outer.empty() || *module == outer || module->starts_with(outer + "."));
}

// Values that are the only one which a module's nodes hand to others or to the graph's results.
std::map<std::string, std::vector<std::string>> module_outputs(const Graph& graph) {
  std::map<std::string, std::set<Module>> users;
  for (const Node& node : graph.nodes)
    for (const std::string& value : node.inputs) users[value].insert(node.module);
  for (const std::string& value : graph.outputs) users[value].insert(std::nullopt);
  std::map<std::string, std::vector<std::string>> handed;  // module -> values
  for (const Node& node : graph.nodes)
    for (const std::string& value : node.outputs) {
      if (value.empty() || !node.module) continue;
      const auto& readers = users[value];
      for (std::string module = *node.module; !module.empty(); module = outer_module(module))
        if (std::any_of(readers.begin(), readers.end(), [&](const Module& user) { return !is_inside(user, module); }))
          handed[module].push_back(value);
    }
  std::map<std::string, std::vector<std::string>> outputs;
  for (const auto& [module, values] : handed)
    if (values.size() == 1) outputs[values.front()].push_back(module);
  for (auto& [value, modules] : outputs)
    std::stable_sort(modules.begin(), modules.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return outputs;
}

}  // namespace

std::string outer_module(const std::string& module) {
  const size_t dot = module.rfind('.');
  return dot == std::string::npos ? "" : module.substr(0, dot);
}

void place_in_modules(Node& node, const std::map<std::string, std::string>& metadata) {
  if (const auto entry = metadata.find(kScopes); entry != metadata.end()) {
    const std::vector<std::string> scopes = python_list(entry->second);  // the last is the op itself
    if (scopes.size() > 1) node.module = scopes[scopes.size() - 2];
    if (const auto classes = metadata.find(kClasses); classes != metadata.end()) {
      node.classes = python_list(classes->second);
      if (node.classes.size() != scopes.size()) node.classes.clear();
      if (!node.classes.empty()) node.classes.pop_back();
    }
  } else if (node.name.starts_with('/')) {
    node.module = module_in_name(node.name);
  }
}

Names names_of(const Graph& graph) {
  Names names{{}, module_outputs(graph)};
  std::map<std::string, int> counted;
  for (const Node& node : graph.nodes) {
    const std::string place = node.module ? *node.module + "/" : "";
    if (!node.module && !node.name.empty())
      names.nodes.push_back(node.name);
    else
      names.nodes.push_back(fmt::format("{}{}.{}", place, node.kind, counted[place + node.kind]++));
  }
  return names;
}

void name_further_results(Names& names, const ShapeOf& shape, const ShapeOf& recorded) {
  for (auto& [value, modules] : names.modules)
    for (std::string& path : modules) {
      const auto here = shape(value), there = recorded(path);
      if (!here || !there || here == there) continue;
      std::vector<std::string> fitting;
      for (int i = 1; const auto further = recorded(fmt::format("{}[{}]", path, i)); ++i)
        if (further == here) fitting.push_back(fmt::format("{}[{}]", path, i));
      if (fitting.size() == 1) path = fitting.front();
    }
}

}  // namespace parity::onnx
