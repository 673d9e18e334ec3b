// A stretch of program that lies before a compared value, and the named changes in it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "diagnose/faults/catalogue.hpp"

namespace parity {

struct Stretch {
  size_t boundary = 0;                  // the compared value
  std::vector<size_t> ops;              // that compute it from compared values and leaves
  std::map<int64_t, at::Tensor> given;  // those compared values, as the candidate has them
  std::string from, to;                 // where it begins and ends, for the report
  std::vector<at::Tensor> computed;     // what the replays have at the boundary
  at::Tensor value;                     // what the candidate has
  int final_op = -1;                    // as in match_hypotheses
};

/// A named change, or one at the same place of several layers.
struct StretchChange {
  FaultHypothesis change;
  double work = 0;         // of running it to the end
  double along = 0;        // estimated share of the squared difference in its direction
  bool estimated = false;  // was it put against the difference to first order?
};

}  // namespace parity
