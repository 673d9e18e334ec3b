// The values that an event names, wherever it keeps them (FORMAT.md, "The program").
#pragma once
#include <nlohmann/json.hpp>

namespace parity {

/// A value whose tensor the recording holds: {"v": id, "k": key, …}.
inline bool is_stored_value(const nlohmann::json& node) {
  return node.is_object() && node.contains("v") && node.contains("k") && node["k"].is_string();
}

/// Calls `visit` with the key of each, repeated ones included.
template <typename Visit>
void for_each_stored_key(const nlohmann::json& node, const Visit& visit) {
  if (is_stored_value(node)) visit(node["k"].get<std::string>());
  if (node.is_structured())
    for (const nlohmann::json& child : node) for_each_stored_key(child, visit);
}

}  // namespace parity
