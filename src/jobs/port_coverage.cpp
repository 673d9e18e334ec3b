#include "jobs/port_coverage.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pair/model_pairing.hpp"

namespace parity {
namespace {

// A candidate with fewer tensors is judged by longer stretches of the reference's program.
std::string granularity(const Program& program, const PortPairing& pairing, const std::vector<Segment>& segments) {
  std::vector<size_t> lengths;
  const PortPair* longest = nullptr;
  for (const PortPair& pair : pairing.pairs) {
    const size_t ops = segments[pair.boundary].ops.size();
    if (ops == 0) continue;
    if (longest == nullptr || ops > segments[longest->boundary].ops.size()) longest = &pair;
    lengths.push_back(ops);
  }
  if (longest == nullptr) return "";
  std::nth_element(lengths.begin(), lengths.begin() + lengths.size() / 2, lengths.end());
  const size_t most = segments[longest->boundary].ops.size(), median = lengths[lengths.size() / 2];
  if (most == 1) return "";
  const std::string& path = program.boundaries[longest->boundary].path;
  return fmt::format(
      "{} compared points for {} ops: a verdict covers the ops since the compared points before it, {} at "
      "the median, {} at most (before {})",
      lengths.size(), program.ops.size(), median, most, path.empty() ? "the model's result" : path);
}

}  // namespace

Coverage port_coverage(const Program& program, const std::vector<CandidateTensor>& candidate,
                       const PortPairing& pairing, const std::vector<Segment>& segments,
                       std::vector<size_t>& uncovered) {
  Pairing marked;
  marked.marked = pairing.marked;
  for (const size_t c : pairing.unmatched) marked.unmatched.push_back(candidate[c].path);
  Coverage coverage = coverage_of(program, marked, uncovered);
  coverage.granularity = granularity(program, pairing, segments);
  return coverage;
}

}  // namespace parity
