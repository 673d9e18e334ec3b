#include "export/build_graphs.hpp"

#include <algorithm>
#include <map>

#include "export/program_nodes.hpp"

namespace parity {
namespace {

/// Rows about a whole recording or program have no place in a graph.
bool about_an_op(const OpResult& op) { return !op.path.starts_with("("); }

std::string with_call(const std::string& path, int call) {
  return call == 0 ? path : path + " (call " + std::to_string(call) + ")";
}

class PairBuilder {
 public:
  PairBuilder(const Report& report, const std::string& name, const Program* reference, const Program* candidate)
      : report_(report), reference_(reference), candidate_(candidate) {
    pair_.name = name;
    left_segments_.resize(report.ops.size());
    right_segments_.resize(report.ops.size());
    for (size_t i = 0; i < report.ops.size(); ++i)
      if (report.ops[i].reference == name && about_an_op(report.ops[i])) rows_.push_back(i);
  }

  GraphPair build() {
    const std::string suffix = pair_.name.empty() ? "" : " " + pair_.name;
    left_ = place(pair_.reference, reference_, "reference" + suffix, false);
    right_ = place(pair_.candidate, candidate_, "candidate" + suffix, true);
    for (const auto& [row, node] : left_)
      if (const auto right = right_.find(row); right != right_.end()) links_.pair(node, right->second);
    widen_links();
    if (!pair_.candidate.flow && pair_.reference.flow) follow_reference();
    pair_.links = links_.take();
    find_error_path();
    return std::move(pair_);
  }

 private:
  static std::optional<size_t> boundary_of(const Program& program, const std::string& path, int call) {
    if (const auto found = program.find(path, call)) return found;
    return program.find(path, 0);  // counted otherwise there
  }

  using Placed = std::map<size_t, size_t>;  // row -> node

  const std::string& path_of(size_t row, bool candidate) const {
    return candidate ? report_.ops[row].candidate_path : report_.ops[row].path;
  }
  bool stands(size_t row, bool candidate) const { return !candidate || report_.ops[row].verdict != Verdict::missing; }

  Placed place_names(SideGraph& graph, const std::string& id, bool candidate) const {
    Placed placed;
    std::map<std::string, size_t> index;
    std::vector<std::string> names;
    for (const size_t row : rows_) {
      if (!stands(row, candidate)) continue;
      const auto [at, added] = index.emplace(with_call(path_of(row, candidate), report_.ops[row].call), names.size());
      if (added) names.push_back(at->first);
      placed[row] = at->second;
    }
    if (candidate)
      for (const std::string& name : unmatched())
        if (index.emplace(name, names.size()).second) names.push_back(name);
    graph = graph_of_names(names, id);
    return placed;
  }

  Placed place_program(SideGraph& graph, const Program& program, const std::string& id, bool candidate) {
    Placed placed;
    ProgramNodes nodes = nodes_of(program, id);
    std::vector<bool> marked(program.boundaries.size());
    std::map<size_t, size_t> at;  // row -> boundary
    for (const size_t row : rows_) {
      const auto b = boundary_of(program, path_of(row, candidate), report_.ops[row].call);
      if (!stands(row, candidate) || !b) continue;
      marked[*b] = true;
      at[row] = *b;
      if (nodes.of_boundary[*b]) placed[row] = *nodes.of_boundary[*b];
    }
    graph = std::move(nodes.graph);
    if (!program.ops.empty()) {
      const auto since = program.ops_since(marked);
      for (const auto& [row, b] : at) (candidate ? right_segments_ : left_segments_)[row] = since[b];
    }
    if (!candidate) boundary_ = std::move(at), marked_ = std::move(marked);
    return placed;
  }

  Placed place(SideGraph& graph, const Program* program, const std::string& id, bool candidate) {
    Placed placed =
        program == nullptr ? place_names(graph, id, candidate) : place_program(graph, *program, id, candidate);
    for (const auto& [row, node] : placed) graph.nodes[node].rows.push_back(row);
    return placed;
  }

  std::vector<std::string> unmatched() const {
    auto coverage = report_.coverage.find(pair_.name);
    if (report_.coverage.size() == 1) coverage = report_.coverage.begin();  // of a single one `run` keeps the name
    return coverage == report_.coverage.end() ? std::vector<std::string>() : coverage->second.unmatched_candidates;
  }

  void widen_links() {
    for (const auto& [row, node] : left_) links_.widen(false, node, left_segments_[row]);
    for (const auto& [row, node] : right_) links_.widen(true, node, right_segments_[row]);
  }

  // A port that recorded values alone: they follow each other as the reference's do that they are paired with.
  void follow_reference() {
    std::map<size_t, size_t> row_of;  // boundary -> row
    for (const auto& [row, b] : boundary_) row_of.emplace(b, row);
    const auto ancestors = reference_->marked_ancestors(marked_);
    for (const auto& [row, b] : boundary_) {
      const auto here = right_.find(row);
      if (here == right_.end()) continue;
      auto& from = pair_.candidate.nodes[here->second].from;
      for (const size_t a : ancestors[b]) {
        const auto there = right_.find(row_of.at(a));
        if (there == right_.end() || there->second == here->second) continue;
        const bool known =
            std::any_of(from.begin(), from.end(), [&](const GraphEdge& edge) { return edge.from == there->second; });
        if (!known) from.push_back({there->second, 0});
      }
    }
    pair_.candidate.flow = true;
  }

  void find_error_path() {
    const OpResult* first = first_divergence(report_);
    if (first == nullptr || !pair_.reference.flow || first->reference != pair_.name) return;
    const auto from = left_.find(static_cast<size_t>(first - report_.ops.data()));
    if (from == left_.end()) return;
    for (auto row = rows_.rbegin(); row != rows_.rend() && pair_.error_path.empty(); ++row)
      if (const auto to = left_.find(*row); to != left_.end() && to->second > from->second)
        pair_.error_path = shortest_path(pair_.reference, from->second, to->second);
  }

  const Report& report_;
  const Program *reference_, *candidate_;
  GraphPair pair_;
  std::vector<size_t> rows_;
  Placed left_, right_;
  std::map<size_t, size_t> boundary_;  // row -> boundary of the reference
  std::vector<bool> marked_;
  std::vector<std::vector<size_t>> left_segments_, right_segments_;  // by row
  GraphLinks links_;
};

}  // namespace

std::vector<GraphPair> graphs_of(const Report& report, const Program* reference, const Program* candidate) {
  std::vector<std::string> names;
  for (const OpResult& op : report.ops)
    if (about_an_op(op) && std::find(names.begin(), names.end(), op.reference) == names.end())
      names.push_back(op.reference);
  std::vector<GraphPair> out;
  for (const std::string& name : names)
    out.push_back(names.size() == 1 ? PairBuilder(report, name, reference, candidate).build()
                                    : PairBuilder(report, name, nullptr, nullptr).build());
  return out;
}

}  // namespace parity
