// The two op graphs of a comparison as viewers draw them: nodes in nested modules, edges by data flow, and on each node
// the rows that judge its value. No tensor, no format.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.hpp"

namespace parity {

struct GraphEdge {
  size_t from = 0;  // index into SideGraph::nodes
  int output = 0;   // which of its results
};

struct GraphNode {
  std::string id, label, space;  // "blocks.0/add.1", "add", "blocks/0"; ids are unique in their graph
  std::vector<GraphEdge> from{};
  std::vector<std::pair<std::string, std::string>> attributes{};
  std::vector<std::string> outputs{};  // "bf16[1, 12, 64]"
  std::vector<size_t> rows{};          // indices into Report::ops
};

struct SideGraph {
  std::string id, label;
  std::vector<GraphNode> nodes;
  bool flow = false;  // has edges: without a recorded program nobody knows them
};

/// Nodes of the two sides that compute the same: the ops since the compared values before it, each node in one only.
struct GraphLink {
  std::vector<size_t> reference, candidate;
};

struct GraphPair {
  std::string name;  // of the reference where a report has several, else ""
  SideGraph reference, candidate;
  std::vector<GraphLink> links;
  std::vector<size_t> error_path;  // reference nodes from the first divergence to the result; empty: none, or no flow
};

/// "blocks.0.attn1" -> {"blocks/0", "attn1"}; of a name that others lie under, and of the root: {"blocks/0/attn1", …}.
std::pair<std::string, std::string> space_and_label(const std::string& name, bool has_children);

/// Nodes named by rows, without edges; `candidate`: by their candidate paths. Names are nested as paths are.
SideGraph graph_of_names(const std::vector<std::string>& names, std::string id);

/// Collects which nodes belong together.
class GraphLinks {
 public:
  /// These two hold the same value.
  void pair(size_t reference, size_t candidate);
  /// `more` besides, as far as they are in no link yet, to the link of `node`.
  void widen(bool candidate_side, size_t node, const std::vector<size_t>& more);
  std::vector<GraphLink> take();

 private:
  std::optional<size_t> find(bool candidate_side, size_t node) const;
  void put(bool candidate_side, size_t node, size_t link);

  std::vector<GraphLink> links_;
  std::vector<std::optional<size_t>> of_reference_, of_candidate_;  // node -> link
};

/// The fewest edges from one node to another; empty when there is no way.
std::vector<size_t> shortest_path(const SideGraph& graph, size_t from, size_t to);

}  // namespace parity
