// Two sides opened and paired, with a bar while their contents are looked through.
#pragma once
#include "cli/command.hpp"
#include "jobs/sides.hpp"

namespace parity::cli {

/// As open_sides.
inline Sides open_pair(const Common& common, const std::filesystem::path& reference,
                       const std::filesystem::path& candidate, const std::filesystem::path& map,
                       const std::filesystem::path& inputs = "") {
  ShareBar bar("pairing", common.quiet);
  return open_sides(reference, candidate, map, std::ref(bar), inputs);
}

}  // namespace parity::cli
