#include "trace/event_reader.hpp"

#include "core/precision.hpp"

namespace parity {

void EventReader::fail(const std::string& what) const {
  throw Error(fmt::format("{}: dataset '/trace/events', event {}: {}", file_.string(), index_ + 1, what));
}

const nlohmann::json& EventReader::field(const char* name) const {
  const auto found = event_.find(name);
  if (found == event_.end()) fail(fmt::format("field '{}' is missing", name));
  return *found;
}

std::string EventReader::text(const char* name) const {
  const auto& found = field(name);
  if (!found.is_string()) fail(fmt::format("field '{}' is not a string", name));
  return found.get<std::string>();
}

std::string EventReader::text_or(const char* name, const char* otherwise) const {
  const auto found = event_.find(name);
  return found == event_.end() || found->is_null() ? otherwise : text(name);
}

int64_t EventReader::integer(const char* name) const {
  const auto& found = field(name);
  if (!found.is_number_integer()) fail(fmt::format("field '{}' is not an integer", name));
  return found.get<int64_t>();
}

bool EventReader::flag(const char* name) const {
  const auto found = event_.find(name);
  return found != event_.end() && found->is_boolean() && found->get<bool>();
}

nlohmann::json EventReader::literal(const char* name, const nlohmann::json& otherwise) const {
  const auto found = event_.find(name);
  if (found == event_.end() || found->is_null()) return otherwise;
  if (found->type() != otherwise.type()) fail(fmt::format("field '{}' is not of type {}", name, otherwise.type_name()));
  return *found;
}

void EventReader::alias(Leaf& leaf) const {
  const nlohmann::json found = literal("alias", nlohmann::json::object());
  if (found.empty()) return;
  const auto integer_at = [&](const nlohmann::json& object) {
    if (!object.is_number_integer() || object.get<int64_t>() < 0)
      fail("field 'alias' is not {\"v\", \"stride\", \"offset\"}");
    return object.get<int64_t>();
  };
  if (!found.contains("v") || !found.contains("stride") || !found.contains("offset") || !found["stride"].is_array())
    fail("field 'alias' is not {\"v\", \"stride\", \"offset\"}");
  leaf.base = integer_at(found["v"]);
  leaf.offset = integer_at(found["offset"]);
  for (const auto& stride : found["stride"]) leaf.strides.push_back(integer_at(stride));
}

Value EventReader::value(const nlohmann::json& encoded) const {
  if (!encoded.is_object()) fail("a value is not an object");
  const auto get = [&](const char* name) -> const nlohmann::json& {
    const auto found = encoded.find(name);
    if (found == encoded.end()) fail(fmt::format("a value has no '{}'", name));
    return *found;
  };
  const auto optional_text = [&](const char* name) {
    const auto found = encoded.find(name);
    return found != encoded.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  Value value;
  if (!get("v").is_number_integer() || !get("d").is_string() || !(get("s").is_array() || get("s").is_null()))
    fail("a value is not {\"v\": integer, \"d\": dtype, \"s\": shape}");
  value.id = get("v").get<int64_t>();
  try {
    value.dtype = parse_dtype(get("d").get<std::string>());
  } catch (const Error& error) {
    fail(error.what());
  }
  value.nested = get("s").is_null();
  for (const auto& size : get("s")) {
    if (!size.is_number_integer() || size.get<int64_t>() < 0)
      fail(fmt::format("value {} has no valid shape", value.id));
    value.shape.push_back(size.get<int64_t>());
  }
  value.key = optional_text("k");
  value.name = optional_text("n");
  return value;
}

std::vector<std::optional<Value>> EventReader::optional_values(const char* name) const {
  if (!field(name).is_array()) fail(fmt::format("field '{}' is not a list of values", name));
  std::vector<std::optional<Value>> result;
  for (const auto& element : field(name))
    result.push_back(element.is_null() ? std::nullopt : std::optional(value(element)));
  return result;
}

std::vector<Value> EventReader::values(const char* name) const {
  std::vector<Value> result;
  for (auto& element : optional_values(name)) {
    if (!element) fail(fmt::format("field '{}' holds null where a value is required", name));
    result.push_back(*std::move(element));
  }
  return result;
}

std::vector<std::string> EventReader::texts(const char* name) const {
  std::vector<std::string> result;
  for (const auto& element : literal(name, nlohmann::json::array())) {
    if (!element.is_string()) fail(fmt::format("field '{}' is not a list of strings", name));
    result.push_back(element.get<std::string>());
  }
  return result;
}

}  // namespace parity
