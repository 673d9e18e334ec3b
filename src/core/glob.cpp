#include "core/glob.hpp"

#include <fnmatch.h>

#include <sstream>
#include <string>

namespace parity {

bool matches_layer(std::string_view path, std::string_view pattern) {
  if (pattern.empty() || pattern == "all") return true;
  const std::string name(path);
  std::istringstream parts{std::string(pattern)};
  for (std::string part; std::getline(parts, part, ',');)
    if (fnmatch(part.c_str(), name.c_str(), 0) == 0) return true;
  return false;
}

}  // namespace parity
