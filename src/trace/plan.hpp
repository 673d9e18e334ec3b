// Which ops a replay runs, which it takes from the store, and how often each value is needed. Private to src/trace.
#pragma once
#include "trace/flow.hpp"
#include "trace/replay.hpp"

namespace parity {

enum class Step : uint8_t { skip, run, load };

struct Plan {
  std::vector<Step> steps;                      // one an op of [0, end)
  std::unordered_map<int64_t, int> uses;        // value id -> reads by steps and visited boundaries
  size_t first_boundary = 0, end_boundary = 0;  // visited: [first, end)
  std::vector<bool> visits;                     // of these, one a boundary; empty: all of them
};

/// Ops [begin, end) run. Of the earlier ones those run or are loaded that make what [begin, end) needs: a stored value
/// is loaded, a view is made again from its base, and an in-place write to memory that is needed is repeated. `given`:
/// ids that come from outside.
Plan make_plan(const Program& program, const Flow& flow, int begin, int end, const std::unordered_set<int64_t>& given);

/// The part's ops run, and nothing else.
Plan plan_of_part(const Program& program, const Flow& flow, const ProgramPart& part);

}  // namespace parity
