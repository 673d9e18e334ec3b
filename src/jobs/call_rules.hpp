// Pairs of single calls as rules of a map file: one rule for all calls of a path where the candidate's name counts
// them.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace parity {

/// A call of the reference's path, and the candidate's tensor that is its counterpart.
struct CallPair {
  std::string path, candidate, steps;  // steps: " perm(1,0)"
  int call = 0, candidate_call = 0;
};

/// "lm_head call({n}) = step{n}.logits" where that gives back every pair exactly, and none of `others`, calls of the
/// reference without a counterpart, a tensor that is `known`; else "lm_head call(3) = t57", one for each pair.
std::vector<std::string> call_rules(const std::vector<CallPair>& pairs,
                                    const std::vector<std::pair<std::string, int>>& others,
                                    const std::function<bool(const std::string& candidate, int call)>& known);

}  // namespace parity
