// What a person should know of two sides before they are compared.
#pragma once
#include <string>

#include "jobs/sides.hpp"

namespace parity {

/// The map's rules that name nothing that the candidate has, whatever they match in the reference, in a line: mostly
/// misspelt ones; "" for none. No error, as one map may serve ports that record less.
std::string idle_rules(const Sides& sides);

/// In which settings that both recordings have they differ, shortened; "" for none.
std::string configuration_difference(const Sides& sides);

}  // namespace parity
