// Keys of a config.json, with messages that name them.
#pragma once
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/error.hpp"

namespace parity {

struct ConfigKeys {
  std::string_view model;  // "wan"
  std::string_view whose;  // "a Wan or SkyReels-V2 transformer's"

  /// The value of `key`; `otherwise` when it is absent or null. Throws Error naming the key when it is missing or of
  /// another type.
  template <typename T>
  T take(const nlohmann::json& config, const char* key, std::optional<T> otherwise = std::nullopt) const {
    const auto found = config.find(key);
    if (found == config.end() || found->is_null()) {
      if (otherwise) return *otherwise;
      throw Error(fmt::format("[{}] the configuration has no '{}': is it {}?", model, key, whose));
    }
    try {
      return found->template get<T>();
    } catch (const nlohmann::json::exception&) {
      throw Error(
          fmt::format("[{}] configuration key '{}' is {}, which is not what belongs there", model, key, found->dump()));
    }
  }
};

}  // namespace parity
