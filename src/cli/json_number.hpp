// A number that may be missing, in `--json`.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>

namespace parity::cli {

inline nlohmann::json json_number(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace parity::cli
