// A JSON file that another tool wrote and that may hold anything; keys keep their order, which is that of execution.
// Private to src/dump.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>

namespace parity {

using OrderedJson = nlohmann::ordered_json;

/// Throws Error: unreadable, truncated, no JSON.
OrderedJson read_json_file(const std::filesystem::path& file);

/// A file that such a JSON names, in `folder`: its name alone counts, for the path is that of another machine. Throws
/// Error when it is not there.
std::filesystem::path file_beside(const std::filesystem::path& folder, const std::string& name,
                                  const std::filesystem::path& json);

}  // namespace parity
