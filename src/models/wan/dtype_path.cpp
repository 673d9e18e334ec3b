#include "models/wan/dtype_path.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace parity {

const WanDtypePath& wan_dtype_path(std::string_view name) {
  for (const auto& path : kWanDtypePaths)
    if (path.name == name) return path;
  std::string names;
  for (const auto& path : kWanDtypePaths) names += fmt::format("{}{}", names.empty() ? "" : ", ", path.name);
  throw Error(fmt::format("[wan] unknown cast placement '{}' (have {})", name, names));
}

}  // namespace parity
