// What parity-check watch says to a port: one line, a JSON object with strings, {"e": "stop", "path": …, "diagnosis":
// …}. Private to parity_probe.hpp.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace parity::probe {

/// Reads one flat JSON object. Whoever listens may be anybody: what is no such object is refused, never guessed at.
class Answer {
 public:
  using Strings = std::map<std::string, std::string>;

  /// Its members that are strings; others (numbers, which later versions may add) are passed over. nullopt: no object.
  static std::optional<Strings> strings_of(std::string_view line) {
    Answer answer(line);
    Strings found;
    bool more = answer.takes('{');
    while (more) {
      std::string name, value;
      if (!answer.string(name) || !answer.takes(':')) return std::nullopt;
      const bool text = answer.next() == '"';
      if (!(text ? answer.string(value) : answer.scalar())) return std::nullopt;
      if (text) found[name] = value;
      more = answer.takes(',');
    }
    if (!answer.takes('}') || answer.next() != '\0') return std::nullopt;
    return found;
  }

 private:
  explicit Answer(std::string_view text) : text_(text) {}

  // The next character that is no space; NUL at the end.
  char next() {
    const std::size_t begin = text_.find_first_not_of(" \t\r");
    text_.remove_prefix(begin == std::string_view::npos ? text_.size() : begin);
    return text_.empty() ? '\0' : text_.front();
  }

  bool takes(char wanted) {
    if (next() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }

  bool string(std::string& to) {
    if (!takes('"')) return false;
    while (!text_.empty()) {
      const char c = text_.front();
      text_.remove_prefix(1);
      if (c == '"') return true;
      if (c != '\\')
        to += c;
      else if (!escape(to))
        return false;
    }
    return false;
  }

  // A number, true, false or null.
  bool scalar() {
    next();
    const std::size_t end = text_.find_first_of(",}\"{[ ");
    if (end == 0 || end == std::string_view::npos) return false;
    text_.remove_prefix(end);
    return true;
  }

  // What follows a backslash.
  bool escape(std::string& to) {
    static constexpr std::string_view letters = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    if (text_.empty()) return false;
    const char c = text_.front();
    text_.remove_prefix(1);
    if (const std::size_t i = letters.find(c); i != std::string_view::npos) return to += meant[i], true;
    unsigned code = 0, low = 0;
    if (c != 'u' || !hexadecimal(code)) return false;
    if (code >= 0xd800 && code < 0xdc00) {  // the first half of a pair
      if (text_.substr(0, 2) != "\\u") return false;
      text_.remove_prefix(2);
      if (!hexadecimal(low) || low < 0xdc00 || low >= 0xe000) return false;
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    append_utf8(to, code);
    return true;
  }

  bool hexadecimal(unsigned& code) {
    static constexpr std::string_view digits = "0123456789abcdef";
    if (text_.size() < 4) return false;
    for (const char c : text_.substr(0, 4)) {
      const std::size_t digit = digits.find(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
      if (digit == std::string_view::npos) return false;
      code = code * 16 + static_cast<unsigned>(digit);
    }
    text_.remove_prefix(4);
    return true;
  }

  static void append_utf8(std::string& to, unsigned code) {
    if (code < 0x80) return void(to += static_cast<char>(code));
    const int following = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    const unsigned marks[] = {0, 0xc0, 0xe0, 0xf0};
    to += static_cast<char>(marks[following] | (code >> (6 * following)));
    for (int i = following - 1; i >= 0; --i) to += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3f));
  }

  std::string_view text_;
};

}  // namespace parity::probe
