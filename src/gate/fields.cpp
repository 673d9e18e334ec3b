#include "gate/fields.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>

#include "core/error.hpp"
#include "core/plain.hpp"
#include "gate/limits.hpp"

namespace parity {
namespace {

std::string shown_file(const std::filesystem::path& file) { return plain(file.string()); }

std::string bytes_of(const std::filesystem::path& file) {
  std::error_code problem;
  if (std::filesystem::is_directory(file, problem)) throw Error(fmt::format("{}: is a folder", shown_file(file)));
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw Error(fmt::format("{}: cannot be read; is it there?", shown_file(file)));
  // Read, not asked for its size: a pipe has none.
  const auto most = static_cast<size_t>(kGate.largest_file.value);
  std::string text, block(1 << 20, '\0');
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())) || stream.gcount() > 0) {
    text.append(block, 0, static_cast<size_t>(stream.gcount()));
    if (text.size() > most)
      throw Error(fmt::format("{}: is larger than {} MiB, no report of this program", shown_file(file), most >> 20));
  }
  return text;
}

}  // namespace

nlohmann::json read_document(const std::filesystem::path& file, const std::string& schema) {
  nlohmann::json document;
  try {
    document = nlohmann::json::parse(bytes_of(file));
  } catch (const nlohmann::json::exception& error) {
    const auto* at = dynamic_cast<const nlohmann::json::parse_error*>(&error);
    throw Error(fmt::format("{}: is no JSON{}; was it written whole?", shown_file(file),
                            at ? fmt::format(" (at byte {})", at->byte) : " that numbers can be read from"));
  }
  const bool named = document.is_object() && document.contains("schema") && document["schema"].is_string();
  const std::string found = named ? document["schema"].get<std::string>() : "";
  if (found != schema)
    throw Error(fmt::format("{}: {}, where {} is needed", shown_file(file),
                            named ? fmt::format("its schema is '{}'", plain(found)) : "it names no schema", schema));
  return document;
}

Fields::Fields(const nlohmann::json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object_.is_object()) throw Error(fmt::format("{}: is no object", plain(where_)));
}

void Fields::reject(const char* key, const std::string& why) const {
  throw Error(fmt::format("{}: '{}' {}", plain(where_), key, why));
}

const nlohmann::json& Fields::at(const char* key) const {
  const auto found = object_.find(key);
  if (found == object_.end()) reject(key, "is missing");
  return *found;
}

std::string Fields::text(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_string()) reject(key, "is no text");
  return value.get<std::string>();
}

std::string Fields::text_or_empty(const char* key) const { return has(key) ? text(key) : ""; }

int64_t Fields::integer(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_number_integer()) reject(key, "is no whole number");
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) reject(key, "is too large");
  return value.get<int64_t>();
}

std::optional<double> Fields::number_or_null(const char* key) const {
  if (!has(key)) return std::nullopt;
  const nlohmann::json& value = at(key);
  if (!value.is_number() || !std::isfinite(value.get<double>())) reject(key, "is no number");
  return value.get<double>();
}

std::optional<double> Fields::magnitude_or_null(const char* key) const {
  at(key);
  const auto value = number_or_null(key);
  if (value && *value < 0) reject(key, "is negative");
  return value;
}

double Fields::magnitude(const char* key) const {
  const auto value = magnitude_or_null(key);
  if (!value) reject(key, "is no number");
  return *value;
}

bool Fields::boolean(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_boolean()) reject(key, "is neither true nor false");
  return value.get<bool>();
}

Verdict Fields::verdict(const char* key) const {
  const std::string name = text(key);
  for (const Verdict v :
       {Verdict::pass, Verdict::fail, Verdict::inconclusive, Verdict::missing, Verdict::shape, Verdict::untrusted})
    if (verdict_name(v) == name) return v;
  reject(key, fmt::format("is no verdict: '{}'", plain(name)));
}

Fields Fields::object(const char* key) const { return {at(key), fmt::format("{}: {}", where_, key)}; }

std::vector<Fields> Fields::objects(const char* key) const {
  const nlohmann::json& list = at(key);
  if (!list.is_array()) reject(key, "is no list");
  std::vector<Fields> out;
  out.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) out.emplace_back(list[i], fmt::format("{}: {}[{}]", where_, key, i));
  return out;
}

}  // namespace parity
