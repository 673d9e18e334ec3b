#include "dump/source_lines.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/plain.hpp"

namespace parity {
namespace {

constexpr char kNote[] = "source_line";
constexpr size_t kLongest = 240;  // bytes shown of one; recorders write up to 200 of the file and of the function

[[noreturn]] void refuse(const Dump& dump, size_t event, const std::string& what) {
  throw Error(fmt::format("{}: dataset '/trace/events', event {}: {}", dump.file().string(), event + 1, what));
}

// The first `kLongest` bytes, no character cut in two.
std::string cut_off(const std::string& text) {
  if (text.size() <= kLongest) return text;
  size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string short_line(const std::string& text) {
  const size_t end = text.find(" in ");  // a function's name may hold slashes; none is looked for in it
  const size_t slash = text.find_last_of("/\\", end);
  const size_t colon = text.rfind(':', end);
  const bool is_line = colon != std::string::npos && colon + 1 < text.size() && is_digit(text[colon + 1]);
  return !is_line || slash == std::string::npos || slash > colon ? text : text.substr(slash + 1);
}

SourceLines::SourceLines(const Dump& dump) : dump_(dump) {
  for (size_t i = 0; i < dump.events().size(); ++i) {
    const nlohmann::json& event = dump.events()[i];
    if (!event.contains("e") || event["e"] != "note" || !event.contains(kNote)) continue;
    if (!event[kNote].is_number_integer() || !event.contains("text") || !event["text"].is_string())
      refuse(dump, i, "a line of source is not {\"source_line\": integer, \"text\": string}");
    if (!numbers_.emplace(event[kNote].get<int64_t>(), add(event["text"].get<std::string>())).second)
      refuse(dump, i, fmt::format("source line {} is defined twice", event[kNote].get<int64_t>()));
  }
}

int SourceLines::find(size_t index, const char* key) {
  const nlohmann::json& event = dump_.events()[index];
  const auto found = event.find(key);
  if (found == event.end() || found->is_null()) return -1;
  if (found->is_string()) return found->get_ref<const std::string&>().empty() ? -1 : add(found->get<std::string>());
  if (!found->is_number_integer())
    refuse(dump_, index, fmt::format("field '{}' is neither a text nor the number of a source line", key));
  const auto number = numbers_.find(found->get<int64_t>());
  if (number == numbers_.end())
    refuse(dump_, index, fmt::format("field '{}' names source line {}, which no note defines", key, found->dump()));
  return number->second;
}

int SourceLines::add(const std::string& text) {
  const auto [known, added] = by_text_.emplace(text, static_cast<int>(texts_.size()));
  if (added) texts_.push_back(plain(cut_off(short_line(text))));
  return known->second;
}

}  // namespace parity
