#include "dump/link_name.hpp"

#include <nlohmann/json.hpp>

namespace parity {
namespace {

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (size_t at = 0; (at = text.find(from)) != std::string_view::npos; text.remove_prefix(at + from.size()))
    result.append(text.substr(0, at)).append(to);
  return result.append(text);
}

}  // namespace

std::string link_name(std::string_view name) {
  if (name.empty()) return "%";
  if (name.find_first_not_of('.') == std::string_view::npos) return replaced(name, ".", "%2E");
  return replaced(name, "/", "%2F");
}

std::string name_of_link(std::string_view link) {
  return link == "%" ? "" : replaced(replaced(link, "%2F", "/"), "%2E", ".");
}

bool is_text(const std::string& name) {
  try {
    return !nlohmann::json(name).dump().empty();  // its encoder checks
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

}  // namespace parity
