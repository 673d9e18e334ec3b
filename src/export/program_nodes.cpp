#include "export/program_nodes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <unordered_map>

#include "core/precision.hpp"
#include "trace/flow.hpp"

namespace parity {
namespace {

std::string called(const std::string& path, int call) {
  return call == 0 ? path : fmt::format("{} (call {})", path, call);
}

std::string output_text(const Value& value) {
  return fmt::format("{}[{}]", short_dtype_name(value.dtype), fmt::join(value.shape, ", "));
}

class OpNodes {
 public:
  OpNodes(const Program& program, const std::string& id) : program_(program), flow_(analyse_flow(program)) {
    nodes_.graph = {id, id, {}, true};
    nodes_.of_boundary.resize(program.boundaries.size());
  }

  ProgramNodes build() {
    nodes_.graph.nodes.resize(program_.ops.size());
    for (const Leaf& leaf : program_.leaves) add_leaf(leaf);
    size_t b = 0;
    for (size_t position = 0; position <= program_.ops.size(); ++position) {
      for (; b < program_.boundaries.size() && static_cast<size_t>(program_.boundaries[b].position) == position; ++b)
        nodes_.of_boundary[b] = op_of(program_.boundaries[b].value.id);
      if (position < program_.ops.size()) add_op(position);
    }
    return std::move(nodes_);
  }

 private:
  /// Who wrote a value last: the op that made it, or a later one that wrote to its memory through any name.
  std::optional<GraphEdge> writer(int64_t id) const {
    const auto made = made_.find(id);
    const auto root = flow_.root.find(id);
    const auto written = root == flow_.root.end() ? written_.end() : written_.find(root->second);
    if (written != written_.end() && (made == made_.end() || is_later(written->second.from, made->second.from)))
      return written->second;
    return made == made_.end() ? std::nullopt : std::optional(made->second);
  }

  bool is_later(size_t writer, size_t maker) const {  // inputs are nodes behind the ops, and before them in time
    return maker >= program_.ops.size() || writer > maker;
  }

  std::optional<size_t> op_of(int64_t id) const {
    const auto edge = writer(id);
    return edge && edge->from < program_.ops.size() ? std::optional(edge->from) : std::nullopt;
  }

  void add_leaf(const Leaf& leaf) {
    for (const std::string& name : leaf.names) {
      if (name.starts_with("weights/")) weights_[leaf.value.id] = name.substr(8);
      if (!name.starts_with("inputs/") || made_.contains(leaf.value.id)) continue;
      made_[leaf.value.id] = {nodes_.graph.nodes.size(), 0};
      nodes_.graph.nodes.push_back({unique(name), name.substr(name.rfind('/') + 1), "inputs"});
      nodes_.graph.nodes.back().outputs = {output_text(leaf.value)};
    }
  }

  void add_op(size_t index) {
    const Op& op = program_.ops[index];
    const OpFlow& flow = flow_.ops[index];
    GraphNode& node = nodes_.graph.nodes[index];
    node.id = unique(called(op.path, op.call));
    node.label = op.kind;
    node.space = space_and_label(op.path.substr(0, op.path.rfind('/')), true).first;
    node.attributes.emplace_back("op", op.name);
    for (const int64_t id : flow.reads) {
      if (const auto edge = writer(id)) node.from.push_back(*edge);
      if (const auto weight = weights_.find(id); weight != weights_.end())
        node.attributes.emplace_back("weight", weight->second);
    }
    if (const std::string source = program_.source(op.line); !source.empty())
      node.attributes.emplace_back("source", source);
    int output = 0;
    for (const auto& value : op.outputs) {
      node.outputs.push_back(value ? output_text(*value) : "none");
      if (value) made_[value->id] = {index, output};
      ++output;
    }
    for (const int64_t id : flow.writes)
      if (const auto root = flow_.root.find(id); root != flow_.root.end()) written_[root->second] = {index, 0};
  }

  std::string unique(std::string id) {
    while (!ids_.insert(id).second) id += "'";
    return id;
  }

  const Program& program_;
  const Flow flow_;
  ProgramNodes nodes_;
  std::unordered_map<int64_t, GraphEdge> made_, written_;  // by value; by the first value of that memory
  std::unordered_map<int64_t, std::string> weights_;
  std::set<std::string> ids_;
};

ProgramNodes named_values(const Program& program, const std::string& id) {
  std::vector<std::string> names;
  ProgramNodes out;
  out.of_boundary.resize(program.boundaries.size());
  std::set<std::string> seen;
  for (size_t b = 0; b < program.boundaries.size(); ++b) {
    const Boundary& boundary = program.boundaries[b];
    const std::string name = called(boundary.path, boundary.call);
    if (!boundary.comparable || !seen.insert(name).second) continue;
    out.of_boundary[b] = names.size();
    names.push_back(name);
  }
  out.graph = graph_of_names(names, id);
  for (size_t b = 0; b < program.boundaries.size(); ++b)
    if (out.of_boundary[b]) {
      GraphNode& node = out.graph.nodes[*out.of_boundary[b]];
      node.outputs = {output_text(program.boundaries[b].value)};
      if (const std::string source = program.source(program.boundaries[b].line); !source.empty())
        node.attributes.emplace_back("source", source);
    }
  return out;
}

}  // namespace

ProgramNodes nodes_of(const Program& program, const std::string& id) {
  return program.ops.empty() ? named_values(program, id) : OpNodes(program, id).build();
}

}  // namespace parity
