// The three ways in which a baseline changes, each asked for by a person who says why. Nothing else ever writes one.
#pragma once
#include <string>
#include <vector>

#include "gate/compare.hpp"

namespace parity {

/// Freezes `report` as the entry of its machine class; other classes stay. Acceptances of the class end: what they
/// allowed is in the new numbers. Throws Error without a reason.
void update_baseline(Baseline& baseline, const Report& report, const std::string& reason, const std::string& today);

struct AcceptRequest {
  std::string path, reason, until;  // a row's path, or its name as the gate prints it
};

/// Loosens the rows of that path which are worse in `report`, up to what they are there. Gives their names. Throws
/// Error without a reason, without a day or with one that has passed, for a path that is no row's, and where nothing is
/// worse.
std::vector<std::string> accept_worse(Baseline& baseline, const Report& report, const AcceptRequest& request,
                                      const std::string& today);

/// What could be tightened, in words; for --update by a person. Never changes anything.
std::vector<std::string> tightening(const GateResult& result);

}  // namespace parity
