// Which side computes an op of a hybrid run.
#pragma once
#include <string>
#include <vector>

#include "pair/model_pairing.hpp"

namespace parity {

/// Which side computes an op: rules "PATH_GLOB=reference" or "PATH_GLOB=port" on the paths of either side. A rule for a
/// module holds for all in it, later rules win, and the port computes what no rule names.
class TakeRules {
 public:
  TakeRules() = default;
  /// Throws Error for a rule of another form.
  explicit TakeRules(const std::vector<std::string>& rules);

  bool empty() const { return rules_.empty(); }
  /// By boundary: paired, and the reference's to compute. Throws Error for a rule that fits no paired boundary.
  std::vector<bool> from_reference(const Program& program, const Pairing& pairing) const;

 private:
  struct Rule {
    std::string glob;
    bool reference = false;
  };
  std::vector<Rule> rules_;
};

}  // namespace parity
