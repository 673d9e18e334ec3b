// The published schemas, by another reader than ours.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace parity::test {

/// "" when reports/`name`.schema.json accepts `document`, else the first complaint.
std::string schema_complaint(const std::string& name, const nlohmann::json& document);

}  // namespace parity::test
