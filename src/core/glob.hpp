// Patterns on paths, as --layer and --accept-path take them.
#pragma once
#include <string_view>

namespace parity {

/// Does `path` match a `--layer` pattern: "all", or globs (`*`, `?`) separated by commas.
bool matches_layer(std::string_view path, std::string_view pattern);

}  // namespace parity
