#include "export/graph.hpp"

#include <algorithm>
#include <set>

namespace parity {

std::pair<std::string, std::string> space_and_label(const std::string& name, bool has_children) {
  if (name.empty()) return {"", "(result)"};
  std::string space = name;
  std::replace(space.begin(), space.end(), '.', '/');
  const size_t cut = space.rfind('/');
  const std::string label = cut == std::string::npos ? space : space.substr(cut + 1);
  if (has_children) return {space, label + " (result)"};
  return {cut == std::string::npos ? "" : space.substr(0, cut), label};
}

SideGraph graph_of_names(const std::vector<std::string>& names, std::string id) {
  SideGraph graph{id, id, {}, false};
  const std::set<std::string> known(names.begin(), names.end());
  const auto has_children = [&](const std::string& name) {
    const auto next = known.lower_bound(name + ".");
    const auto op = known.lower_bound(name + "/");
    return (next != known.end() && next->starts_with(name + ".")) || (op != known.end() && op->starts_with(name + "/"));
  };
  for (const std::string& name : names) {
    auto [space, label] = space_and_label(name, has_children(name));
    graph.nodes.push_back({name.empty() ? "(result)" : name, std::move(label), std::move(space)});
  }
  return graph;
}

std::optional<size_t> GraphLinks::find(bool candidate_side, size_t node) const {
  const auto& of = candidate_side ? of_candidate_ : of_reference_;
  return node < of.size() ? of[node] : std::nullopt;
}

void GraphLinks::put(bool candidate_side, size_t node, size_t link) {
  auto& of = candidate_side ? of_candidate_ : of_reference_;
  if (of.size() <= node) of.resize(node + 1);
  of[node] = link;
  (candidate_side ? links_[link].candidate : links_[link].reference).push_back(node);
}

void GraphLinks::pair(size_t reference, size_t candidate) {
  const auto left = find(false, reference), right = find(true, candidate);
  if (left && right && *left == *right) return;
  if (left && right) {  // two rows that were apart share a node: one link
    const GraphLink other = std::exchange(links_[*right], {});
    for (const size_t node : other.reference) put(false, node, *left);
    for (const size_t node : other.candidate) put(true, node, *left);
    return;
  }
  const size_t link = left ? *left : right ? *right : links_.size();
  if (link == links_.size()) links_.emplace_back();
  if (!left) put(false, reference, link);
  if (!right) put(true, candidate, link);
}

void GraphLinks::widen(bool candidate_side, size_t node, const std::vector<size_t>& more) {
  const auto link = find(candidate_side, node);
  if (!link) return;
  for (const size_t other : more)
    if (!find(candidate_side, other)) put(candidate_side, other, *link);
}

std::vector<GraphLink> GraphLinks::take() {
  std::erase_if(links_, [](const GraphLink& link) { return link.reference.empty(); });
  for (GraphLink& link : links_) {
    std::sort(link.reference.begin(), link.reference.end());
    std::sort(link.candidate.begin(), link.candidate.end());
  }
  return std::move(links_);
}

std::vector<size_t> shortest_path(const SideGraph& graph, size_t from, size_t to) {
  std::vector<std::vector<size_t>> next(graph.nodes.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (const GraphEdge& edge : graph.nodes[n].from) next[edge.from].push_back(n);
  std::vector<std::optional<size_t>> before(graph.nodes.size());
  std::vector<size_t> seen{from};
  before[from] = from;
  for (size_t i = 0; i < seen.size() && !before[to]; ++i)
    for (const size_t n : next[seen[i]])
      if (!before[n]) before[n] = seen[i], seen.push_back(n);
  if (!before[to] || from == to) return {};
  std::vector<size_t> path{to};
  while (path.back() != from) path.push_back(*before[path.back()]);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace parity
