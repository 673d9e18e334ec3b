#include "export/model_explorer.hpp"

#include <fmt/format.h>

#include "export/build_graphs.hpp"
#include "report/limit_use.hpp"
#include "report/markup.hpp"
#include "report/sink.hpp"

namespace parity {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json attribute(const std::string& key, const std::string& text) { return {{"key", key}, {"value", plain(text)}}; }

/// A link to other nodes of the graph.
json link(const std::string& key, const std::string& id) {
  return {{"key", key}, {"value", {{"type", "node_ids"}, {"nodeIds", {plain(id)}}}}};
}

void add_row(json& out, const OpResult& op, const std::string& suffix) {
  const auto put = [&](const char* key, const std::string& text) {
    if (!text.empty()) out.push_back(attribute(key + suffix, text));
  };
  put("verdict", verdict_name(op.verdict));
  put("gate", gate_name(op.gate));
  put("diagnosis", op.diagnosis);
  if (const auto share = share_of_limits(op)) put("error / limit", fmt::format("{:.3g}", *share));
  if (op.forced && op.forced->rel_l2) put("relative L2, own error", fmt::format("{:.3g}", *op.forced->rel_l2));
  if (op.free && op.free->rel_l2) put("relative L2, free-running", fmt::format("{:.3g}", *op.free->rel_l2));
  if (op.amplification) put("amplification", fmt::format("{:.3g}", *op.amplification));
  put("reference", op.path.empty() ? "(result)" : op.path);
  put("candidate", op.candidate_path);
  put("source of the reference", op.source);
  put("source of the candidate", op.candidate_source);
  put("again", op.rerun);
}

json attributes_of(const Report& report, const GraphNode& node) {
  json out = json::array();
  for (const auto& [key, text] : node.attributes) out.push_back(attribute(key, text));
  for (const size_t row : node.rows) {
    const OpResult& op = report.ops[row];
    add_row(out, op, node.rows.size() == 1 ? "" : fmt::format(" ({}, {})", op.dtype, op.path));
  }
  return out;
}

/// Not passing, and another op diverged before it.
bool later_than(const OpResult* first, const OpResult& op) {
  return first != nullptr && &op != first && op.reference == first->reference && op.verdict != Verdict::pass &&
         op.index > first->index;
}

json outputs_of(const GraphNode& node) {
  json out = json::array();
  for (size_t i = 0; i < node.outputs.size(); ++i)
    out.push_back({{"id", std::to_string(i)}, {"attrs", {attribute("tensor_shape", node.outputs[i])}}});
  return out;
}

json incoming(const SideGraph& graph, const GraphNode& node) {
  json out = json::array();
  for (size_t i = 0; i < node.from.size(); ++i)
    out.push_back({{"sourceNodeId", plain(graph.nodes[node.from[i].from].id)},
                   {"sourceNodeOutputId", std::to_string(node.from[i].output)},
                   {"targetNodeInputId", std::to_string(i)}});
  return out;
}

json graph_json(const Report& report, const SideGraph& graph, const OpResult* first) {
  const GraphNode* cause = nullptr;
  for (const GraphNode& node : graph.nodes)
    for (const size_t row : node.rows)
      if (&report.ops[row] == first) cause = &node;
  json nodes = json::array();
  for (const GraphNode& node : graph.nodes) {
    json attributes = attributes_of(report, node);
    for (const size_t row : node.rows)
      if (cause != nullptr && cause != &node && later_than(first, report.ops[row])) {
        attributes.push_back(link("first divergence", cause->id));
        break;
      }
    nodes.push_back({{"id", plain(node.id)},
                     {"label", plain(node.label)},
                     {"namespace", plain(node.space)},
                     {"incomingEdges", incoming(graph, node)},
                     {"attrs", std::move(attributes)},
                     {"outputsMetadata", outputs_of(node)}});
  }
  return {{"id", plain(graph.id)}, {"nodes", std::move(nodes)}};
}

std::string edge_label(const Report& report, const GraphNode& node) {
  for (const size_t row : node.rows) {
    const OpResult& op = report.ops[row];
    std::string text = op.free && op.free->rel_l2 ? fmt::format("error {:.2g}", *op.free->rel_l2) : "";
    if (op.amplification) text += fmt::format("{}×{:.2g}", text.empty() ? "" : ", ", *op.amplification);
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace

json graph_file(const Report& report, const std::vector<GraphPair>& pairs, bool candidate) {
  const OpResult* first = first_divergence(report);
  json graphs = json::array();
  for (const GraphPair& pair : pairs)
    graphs.push_back(graph_json(report, candidate ? pair.candidate : pair.reference, first));
  return {{"label", candidate ? "candidate" : "reference"}, {"graphs", std::move(graphs)}};
}

json sync_file(const std::vector<GraphPair>& pairs) {
  json entries = json::array();
  const auto ids = [](const SideGraph& graph, const std::vector<size_t>& nodes) {
    json out = json::array();
    for (const size_t node : nodes) out.push_back(plain(graph.nodes[node].id));
    return out;
  };
  for (const GraphPair& pair : pairs)
    for (const GraphLink& one : pair.links)
      entries.push_back(
          {{"leftNodeIds", ids(pair.reference, one.reference)}, {"rightNodeIds", ids(pair.candidate, one.candidate)}});
  return {{"type", "sync_navigation"},
          {"mappingEntries", std::move(entries)},
          {"disableMappingFallback", true},  // equal names without a pairing are not a pair
          {"showDiffHighlights", true}};
}

json overlay_file(const Report& report, const std::vector<GraphPair>& pairs) {
  json overlays = json::array();
  for (const GraphPair& pair : pairs) {
    json edges = json::array();
    for (size_t i = 1; i < pair.error_path.size(); ++i) {
      const GraphNode &from = pair.reference.nodes[pair.error_path[i - 1]],
                      &to = pair.reference.nodes[pair.error_path[i]];
      edges.push_back({{"sourceNodeId", plain(from.id)}, {"targetNodeId", plain(to.id)}});
      if (const std::string label = edge_label(report, to); !label.empty()) edges.back()["label"] = label;
    }
    if (edges.empty()) continue;
    overlays.push_back({{"name", "from the first divergence to the result"},
                        {"edges", std::move(edges)},
                        {"edgeColor", "#d32f2f"},
                        {"edgeWidth", 3}});
  }
  if (overlays.empty()) return nullptr;
  return {{"type", "edge_overlays"}, {"name", "error path"}, {"overlays", std::move(overlays)}};
}

std::vector<fs::path> write_model_explorer(const ExportInput& input, const fs::path& folder) {
  const std::vector<GraphPair> pairs = graphs_of(input.report, input.reference, input.candidate);
  std::vector<fs::path> written;
  const auto write = [&](const std::string& name, const json& file) {
    written.push_back(folder / (name + ".json"));
    write_file(written.back(), file.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
  };
  write("reference", graph_file(input.report, pairs, false));
  write("candidate", graph_file(input.report, pairs, true));
  for (const NodeData& data : node_data(input.report, pairs)) write(data.name, data.file);
  write("sync", sync_file(pairs));
  if (const json overlays = overlay_file(input.report, pairs); !overlays.is_null()) {
    write("error_path", overlays);
  } else {
    std::error_code none;  // that of an earlier report would be taken for this one's
    fs::remove(folder / "error_path.json", none);
  }
  return written;
}

}  // namespace parity
