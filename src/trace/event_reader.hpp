// One event of a recording with checked access: every complaint names the file, the event and the field. Private to
// src/trace.
#pragma once
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/error.hpp"
#include "trace/program.hpp"

namespace parity {

class EventReader {
 public:
  EventReader(const Dump& dump, size_t index) : event_(dump.events()[index]), file_(dump.file()), index_(index) {}

  [[noreturn]] void fail(const std::string& what) const;

  std::string kind() const { return text("e"); }
  std::string text(const char* field) const;
  std::string text_or(const char* field, const char* otherwise) const;  // absent or null: `otherwise`
  int64_t integer(const char* field) const;
  bool has(const char* field) const { return event_.contains(field); }
  bool flag(const char* field) const;  // absent: false
  nlohmann::json literal(const char* field,
                         const nlohmann::json& otherwise) const;  // absent: `otherwise`; else the same JSON type

  /// The event itself is a value ("leaf", "point").
  Value value() const { return value(event_); }
  /// Where a leaf lies in another value's memory, when the event says so.
  void alias(Leaf& leaf) const;
  /// A list of values; with `nulls`, null elements become nullopt.
  std::vector<Value> values(const char* field) const;
  std::vector<std::optional<Value>> optional_values(const char* field) const;
  std::vector<std::string> texts(const char* field) const;  // absent: empty

 private:
  const nlohmann::json& field(const char* name) const;
  Value value(const nlohmann::json& encoded) const;

  const nlohmann::json& event_;
  const std::filesystem::path& file_;
  size_t index_;
};

}  // namespace parity
