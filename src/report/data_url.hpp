// Files inside a page. Private to src/report.
#pragma once
#include <filesystem>
#include <string>

namespace parity {

/// "data:image/png;base64,…" of a file; "" when it cannot be read.
std::string data_url(const std::filesystem::path& file, const char* type);

}  // namespace parity
