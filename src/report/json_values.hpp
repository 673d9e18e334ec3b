// Numbers and texts as JSON has them, in reports and behind `--json`.
#pragma once
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/markup.hpp"

namespace parity {

/// null for what does not exist or is not finite.
inline nlohmann::json value(std::optional<double> number) {
  return number && std::isfinite(*number) ? nlohmann::json(*number) : nlohmann::json(nullptr);
}

inline nlohmann::json texts(const std::vector<std::string>& list) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& text : list) out.push_back(plain(text));
  return out;
}

}  // namespace parity
