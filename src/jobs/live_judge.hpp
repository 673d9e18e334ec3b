// A running port's tensors judged while more of them come.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/result.hpp"
#include "jobs/sides.hpp"

namespace parity {

class LiveJudge {
 public:
  /// `sides` outlives it: a reference with a program, the map, and the candidate's tensors as they arrive. `layer`: as
  /// PortJobOptions.
  LiveJudge(const Sides& sides, std::string layer) : sides_(sides), layer_(std::move(layer)) {}

  /// The first row that differs in what has arrived, with the diagnosis that the comparison of it would have. What has
  /// not arrived is missing, and nothing is said about it; what more tensors may show to be right waits: parts
  /// (calls/parts_to_come.hpp) and pairs that were guessed. Throws Error for unusable recordings.
  std::optional<OpResult> first_divergence();

 private:
  const Sides& sides_;
  const std::string layer_;
  size_t judged_ = 0;        // tensors
  std::set<int64_t> right_;  // boundaries that differed, of which a diagnosis showed that nothing is wrong
};

}  // namespace parity
