// Files for Google's Model Explorer. Shapes: its graph_builder.py, node_data_builder.py and sync_navigation.ts, read in
// 0.1.34.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "export/formats.hpp"
#include "export/graph.hpp"

namespace parity {

/// reference.json, candidate.json: graphs. error_over_limit.<dtype>.json and others: node data. sync.json: which nodes
/// belong together. error_path.json: an edge overlay, where there is a divergence.
std::vector<std::filesystem::path> write_model_explorer(const ExportInput& input, const std::filesystem::path& folder);

/// One side of all pairs.
nlohmann::json graph_file(const Report& report, const std::vector<GraphPair>& pairs, bool candidate);
nlohmann::json sync_file(const std::vector<GraphPair>& pairs);
/// null when no pair has a path.
nlohmann::json overlay_file(const Report& report, const std::vector<GraphPair>& pairs);

struct NodeData {
  std::string name;     // of the file, without suffix
  nlohmann::json file;  // by graph id
};
/// A column each: what share of its limit a row uses, verdict, free-running error; by dtype.
std::vector<NodeData> node_data(const Report& report, const std::vector<GraphPair>& pairs);

}  // namespace parity
