// Which point of the candidate is which boundary of the reference, and what that leaves uncovered.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "models/model.hpp"
#include "pair/name_map.hpp"
#include "pair/probes.hpp"
#include "trace/program.hpp"

namespace parity {

struct Pair {
  size_t boundary = 0;  // index into Program::boundaries
  PointKey candidate;
  Layout layout;  // candidate's tensor -> reference's
  std::string kind;
};

struct Pairing {
  std::vector<Pair> pairs;                  // in the reference's execution order
  std::map<PointKey, size_t> by_candidate;  // -> index into pairs
  std::vector<bool> marked;                 // by boundary: is it paired?
  std::vector<std::string> unmatched;       // candidate points without counterpart

  const Pair* find(const PointKey& candidate) const;
};

/// Pairs by the model's map, else by equal path; of several reference boundaries with one candidate point the first
/// counts. Throws Error for a map rule that matches nothing in the reference.
Pairing pair_points(const Program& program, const PortedModel& model, const RecordedPoints& points);

/// What of the reference is compared, inside something compared later, unused by any output, or neither.
/// `uncovered`: the boundaries of the last sort, each to become a row with verdict missing.
Coverage coverage_of(const Program& program, const Pairing& pairing, std::vector<size_t>& uncovered);

}  // namespace parity
