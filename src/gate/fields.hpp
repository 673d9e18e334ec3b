// JSON files that may hold anything: whatever is missing or of another kind is one line that says where.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace parity {

/// The JSON in `file`, an object whose "schema" is `schema`. Throws Error.
nlohmann::json read_document(const std::filesystem::path& file, const std::string& schema);

/// An object of such a file, with its place in it. `object` must outlive it.
class Fields {
 public:
  Fields(const nlohmann::json& object, std::string where);  // throws Error unless it is an object

  bool has(const char* key) const { return object_.contains(key) && !object_[key].is_null(); }
  std::string text(const char* key) const;
  std::string text_or_empty(const char* key) const;  // also where the key does not exist
  int64_t integer(const char* key) const;
  double magnitude(const char* key) const;                         // finite, not negative
  std::optional<double> magnitude_or_null(const char* key) const;  // the key must exist
  std::optional<double> number_or_null(const char* key) const;     // also where the key does not exist
  bool boolean(const char* key) const;
  Verdict verdict(const char* key) const;
  Fields object(const char* key) const;
  std::vector<Fields> objects(const char* key) const;  // an array of objects
  const nlohmann::json& raw() const { return object_; }
  [[noreturn]] void reject(const char* key, const std::string& why) const;

 private:
  const nlohmann::json& at(const char* key) const;

  const nlohmann::json& object_;
  std::string where_;
};

}  // namespace parity
