#include "pair/model_pairing.hpp"

namespace parity {

const Pair* Pairing::find(const PointKey& candidate) const {
  const auto found = by_candidate.find(candidate);
  return found == by_candidate.end() ? nullptr : &pairs[found->second];
}

Pairing pair_points(const Program& program, const PortedModel& model, const RecordedPoints& points) {
  const NameMap map = NameMap::parse(model.map(), "the model's map");
  std::vector<std::string> references;
  for (const Boundary& b : program.boundaries) references.push_back(b.path);
  map.require_all_used(references);
  Pairing pairing;
  pairing.marked.assign(program.boundaries.size(), false);
  for (size_t b = 0; b < program.boundaries.size(); ++b) {
    const Boundary& boundary = program.boundaries[b];
    const auto target = map.find(boundary.path).value_or(NameMap::Target{boundary.path, {}, 0});
    const PointKey candidate{target.candidate, boundary.call};
    if (!boundary.comparable || !points.values.count(candidate)) continue;
    if (!pairing.by_candidate.emplace(candidate, pairing.pairs.size()).second) continue;
    pairing.marked[b] = true;
    pairing.pairs.push_back({b, candidate, target.layout, model.kind(candidate.first)});
  }
  for (const PointKey& point : points.order)
    if (!pairing.by_candidate.count(point)) pairing.unmatched.push_back(point.first);
  return pairing;
}

Coverage coverage_of(const Program& program, const Pairing& pairing, std::vector<size_t>& uncovered) {
  std::vector<bool> is_output(program.boundaries.size());
  for (size_t b = 0; b < is_output.size(); ++b) {
    const std::string& path = program.boundaries[b].path;
    is_output[b] = path.empty() || path.starts_with("[");  // the root's result, and its further tensors
  }
  const std::vector<bool> covered = program.covered_by(pairing.marked), live = program.covered_by(is_output);
  Coverage coverage;
  coverage.unmatched_candidates = pairing.unmatched;
  for (size_t b = 0; b < pairing.marked.size(); ++b) {
    const std::string& path = program.boundaries[b].path;
    if (pairing.marked[b]) {
      ++coverage.paired;
    } else if (covered[b]) {
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
