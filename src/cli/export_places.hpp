// "--export FORMAT=PATH": checked before anything is compared, written after.
#pragma once
#include <string>
#include <vector>

#include "export/formats.hpp"
#include "jobs/sides.hpp"

namespace parity::cli {

struct ExportPlace {
  const ExportFormat* format = nullptr;
  std::filesystem::path place;
};

/// Throws Error for an unknown format or one without a place.
std::vector<ExportPlace> export_places(const std::vector<std::string>& texts);

/// The sides' programs are used as far as they have one; null: none at hand.
std::vector<std::filesystem::path> write_export(const ExportPlace& place, const Report& report,
                                                const OpenedSide* reference, const OpenedSide* candidate);

}  // namespace parity::cli
