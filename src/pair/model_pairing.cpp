#include "pair/model_pairing.hpp"

#include <algorithm>
#include <unordered_map>

#include "trace/flow.hpp"
#include "trace/path.hpp"

namespace parity {

const Pair* Pairing::find(const PointKey& candidate) const {
  const auto found = by_candidate.find(candidate);
  return found == by_candidate.end() ? nullptr : &pairs[found->second];
}

Pairing pair_points(const Program& program, const PortedModel& model, const RecordedPoints& points) {
  const NameMap map = NameMap::parse(model.map(), "the model's map");
  std::vector<NameMap::Name> references;
  for (const Boundary& b : program.boundaries) references.push_back({b.path, b.call});
  map.require_all_used(references);
  Pairing pairing;
  pairing.marked.assign(program.boundaries.size(), false);
  for (size_t b = 0; b < program.boundaries.size(); ++b) {
    const Boundary& boundary = program.boundaries[b];
    const auto target =
        map.find(boundary.path, boundary.call).value_or(NameMap::Target{boundary.path, {}, 0, boundary.call});
    const PointKey candidate{target.candidate, target.call};
    if (!boundary.comparable || !points.values.count(candidate)) continue;
    if (!pairing.by_candidate.emplace(candidate, pairing.pairs.size()).second) continue;
    pairing.marked[b] = true;
    pairing.pairs.push_back({b, candidate, target.layout, model.kind(candidate.first)});
  }
  for (const PointKey& point : points.order)
    if (!pairing.by_candidate.count(point)) pairing.unmatched.push_back(point.first);
  return pairing;
}

namespace {

// The value behind views: they show the numbers of what they view.
int64_t behind_views(const std::unordered_map<int64_t, int64_t>& viewed, int64_t id) {
  for (auto found = viewed.find(id); found != viewed.end(); found = viewed.find(id)) id = found->second;
  return id;
}

// Boundaries whose value is another name, or a view, of a marked one's (a returned hidden state).
std::vector<bool> other_names_of(const Program& program, const std::vector<bool>& marked) {
  const Flow flow = analyse_flow(program);
  std::unordered_map<int64_t, int64_t> viewed;
  for (const OpFlow& op : flow.ops)
    for (const int64_t id : op.fresh)
      if (op.base >= 0 && op.base != id) viewed.emplace(id, op.base);
  std::map<int64_t, int64_t> compared;  // value -> elements
  for (size_t b = 0; b < marked.size(); ++b)
    if (marked[b]) {
      const Value& value = program.boundaries[b].value;
      int64_t& most = compared[behind_views(viewed, value.id)];
      most = std::max(most, value.elements());
    }
  std::vector<bool> alias(marked.size(), false);
  for (size_t b = 0; b < marked.size(); ++b) {
    const Value& value = program.boundaries[b].value;
    const auto found = compared.find(behind_views(viewed, value.id));
    alias[b] = found != compared.end() && found->second >= value.elements();
  }
  return alias;
}

}  // namespace

Coverage coverage_of(const Program& program, const Pairing& pairing, std::vector<size_t>& uncovered) {
  std::vector<bool> is_output(program.boundaries.size());
  for (size_t b = 0; b < is_output.size(); ++b) {
    const std::string& path = program.boundaries[b].path;
    is_output[b] = is_model_result(path);
  }
  const std::vector<bool> covered = program.covered_by(pairing.marked), live = program.covered_by(is_output);
  const std::vector<bool> alias = other_names_of(program, pairing.marked);
  Coverage coverage;
  coverage.unmatched_candidates = pairing.unmatched;
  for (size_t b = 0; b < pairing.marked.size(); ++b) {
    const std::string& path = program.boundaries[b].path;
    if (pairing.marked[b]) {
      ++coverage.paired;
    } else if (covered[b] || alias[b]) {
      ++coverage.covered;
    } else if (!live[b]) {
      ++coverage.unused;
      coverage.unused_paths.push_back(path);
    } else {
      ++coverage.uncovered;
      coverage.uncovered_paths.push_back(path);
      uncovered.push_back(b);
    }
  }
  return coverage;
}

}  // namespace parity
