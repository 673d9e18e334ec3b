// What the reference's dataflow says about pairs, whatever the tensors' contents are like.
#pragma once
#include <utility>
#include <vector>

#include "pair/limits.hpp"
#include "trace/program.hpp"

namespace parity {

class PairingOrder {
 public:
  /// `known`: pairs (boundary, candidate tensor), candidate tensors in execution order.
  PairingOrder(const Program& reference, const std::vector<std::pair<size_t, size_t>>& known);

  /// A value is made after what it is computed from, in any program: does the candidate's tensor lie after the known
  /// counterparts of what the boundary is computed from, and before those of what is computed from it? A rotated query
  /// is not a counterpart of the product inside the norm before it. Always true where more than a tenth of the known
  /// pairs contradict each other: the candidate's tensors are not in execution order (a file sorted by name).
  bool possible(size_t boundary, size_t candidate) const {
    const auto place = static_cast<int64_t>(candidate);
    return !ordered_ || (after_[boundary] < place && place < before_[boundary]);
  }

  /// The same for a tensor that may have been recorded once more: later, or beside what it is computed from (a product
  /// before the view of it that the module returns), but not long before.
  bool possible_again(size_t boundary, size_t candidate) const {
    return !ordered_ ||
           static_cast<double>(after_[boundary]) < static_cast<double>(candidate) + kPairLimits.program.beside;
  }

  /// Is the boundary an op's result that has a known counterpart under another name (the product whose view the module
  /// returns)? There is nothing left to pair.
  bool known_by_another_name(size_t boundary) const { return known_value_[boundary]; }

 private:
  void find_known_values(const Program& reference, const std::vector<int64_t>& counterpart);

  std::vector<int64_t> after_, before_;  // by boundary, exclusive
  std::vector<bool> known_value_;        // by boundary
  bool ordered_ = true;
};

/// Of `pairs` (boundary, candidate tensor) those that cannot be: the candidate's tensor lies before the counterparts of
/// most of what its boundary is computed from. Engines reuse memory, and a node that was not computed shows a value of
/// an earlier run there, alike to the last bit. None where that is so of more than a tenth: the tensors are in no
/// order.
std::vector<size_t> before_their_causes(const Program& reference, const std::vector<std::pair<size_t, size_t>>& pairs);

/// Of `pairs` those whose tensor lies behind the counterparts of most of what is computed from it next: a stale value
/// of a later layer looks so, alike to the last bit. None where that is so of more than a tenth.
std::vector<size_t> behind_their_effects(const Program& reference, const std::vector<std::pair<size_t, size_t>>& pairs);

}  // namespace parity
