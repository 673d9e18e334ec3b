// A tensor's name as one step of an HDF5 path, and back (FORMAT.md: "/" is written %2F). Private to src/dump.
#pragma once
#include <string>
#include <string_view>

namespace parity {

/// "." (the group itself) and "" cannot be link names either.
std::string link_name(std::string_view name);
std::string name_of_link(std::string_view link);

/// Valid UTF-8: names go into messages, reports and JSON.
bool is_text(const std::string& name);

}  // namespace parity
