#include "dump/json_file.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/plain.hpp"
#include "dump/mapped_file.hpp"

namespace parity {

OrderedJson read_json_file(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  try {
    return OrderedJson::parse(mapped.data(), mapped.data() + mapped.size());
  } catch (const OrderedJson::exception& error) {
    const auto* at = dynamic_cast<const OrderedJson::parse_error*>(&error);
    throw Error(fmt::format("{}: is no JSON{}; was it written whole?", file.string(),
                            at ? fmt::format(" (at byte {})", at->byte) : ""));
  }
}

std::filesystem::path file_beside(const std::filesystem::path& folder, const std::string& name,
                                  const std::filesystem::path& json) {
  const std::filesystem::path file = folder / std::filesystem::path(name).filename();
  std::error_code problem;
  if (!std::filesystem::is_regular_file(file, problem))
    throw Error(fmt::format("{}: names the file '{}', which is not there; copy the whole folder", json.string(),
                            plain(file.string())));
  return file;
}

}  // namespace parity
