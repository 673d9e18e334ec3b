// The same change at several ops, tried together: queries and keys that a port rotates alike, and what each call of a
// module leaves for the next in a cache.
#pragma once
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "diagnose/faults/catalogue.hpp"

namespace parity {

class JointChanges {
 public:
  explicit JointChanges(const ProgramIndex& program);

  /// `found`: the changes that begin at that op; ops in the program's order.
  void add(int op, const Hypotheses& found);

  /// By the first of their ops. Of one module call: what is marked `joint`. Of all calls of a module that reads what an
  /// earlier call of it made: the same, and each logic fault of one op.
  std::map<int, Hypotheses> all() const;

 private:
  using Change = std::tuple<std::string, std::string, std::string>;  // where, fault, what

  bool remembers(int op) const;

  const ProgramIndex& program_;
  std::set<std::string> remembering_;                    // modules
  std::map<int, std::map<Change, Hypotheses>> of_call_;  // by module call
  std::map<Change, Hypotheses> of_calls_;
};

}  // namespace parity
