// What dataflow says about pairs: a value is made after what it is computed from, in any program.
#pragma once
#include <utility>
#include <vector>

#include "trace/program.hpp"

namespace parity {

/// Where a boundary's counterpart can lie among the candidate's tensors, both lists in execution order, given some
/// pairs: after the counterparts of what it is computed from and before those of what is computed from it. A rotated
/// query is no counterpart of the product inside the norm before it, however alike their numbers are.
class PairingOrder {
 public:
  /// `known`: (boundary, candidate tensor). Where more than a tenth of them contradict each other, the candidate's
  /// tensors are not in execution order (a file of tensors is sorted by name), and everything is possible.
  PairingOrder(const Program& reference, const std::vector<std::pair<size_t, size_t>>& known);

  bool possible(size_t boundary, size_t candidate) const {
    const auto place = static_cast<int64_t>(candidate);
    return !ordered_ || (after_[boundary] < place && place < before_[boundary]);
  }

 private:
  std::vector<int64_t> after_, before_;  // by boundary, exclusive
  bool ordered_ = true;
};

}  // namespace parity
