// The events of a selected part of a program, as they will stand in the extract. Private to src/trace.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "trace/selection.hpp"

namespace parity {

struct ExtractEvents {
  std::vector<nlohmann::json> events;    // after the leaves
  std::set<int64_t> external;            // ids that they refer to and that come from outside
  std::map<int64_t, std::string> names;  // of those that are arguments: the parameter's name
  std::map<int64_t, std::string> keys;   // of those whose state at the beginning the recording holds
  std::vector<std::string> outputs;      // paths of the selection's results
};

/// Leaves that lie in memory made inside stay where they are; all others are left to the caller.
ExtractEvents events_of(const Dump& dump, const Program& program, const Flow& flow, const Selection& selection);

/// Takes out what refers to values that nobody has (arguments that no op reads).
void drop_values(std::vector<nlohmann::json>& events, const std::set<int64_t>& ids);

/// "path", "path[1]", …
std::string numbered_path(const std::string& path, size_t output);

}  // namespace parity
