#include "report/markup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdint>
#include <vector>

namespace parity {
namespace {

/// The code point at `text[i]` and its length; length 0 for bytes that are not UTF-8 (overlong forms and surrogates
/// included).
struct CodePoint {
  uint32_t value = 0;
  size_t length = 0;
};

CodePoint decode(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) -> uint32_t { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0; };
  const uint32_t first = byte(i);
  if (first < 0x80) return {first, 1};
  const size_t length = first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  if (length == 0) return {};
  uint32_t value = first & (0xff >> (length + 1));
  for (size_t k = 1; k < length; ++k) {
    if (byte(i + k) >> 6 != 2) return {};
    value = value << 6 | (byte(i + k) & 0x3f);
  }
  constexpr std::array<uint32_t, 5> kSmallest{0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return {};
  return {value, length};
}

/// Invisible, or able to change what the characters around it look like.
bool is_treacherous(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
         (c & 0xfffe) == 0xfffe || (c >= 0xe0000 && c <= 0xe0fff);
}

size_t characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

bool is_code_safe(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) ||
         std::string_view(" ._/:,;=+-*()[]{}'\"#%@!?^~").find(c) != std::string_view::npos || (c & 0x80);
}

}  // namespace

std::string plain(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = decode(text, i);
    if (c.length == 0)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
    else if (!is_treacherous(c.value))
      out += text.substr(i, c.length);
    else if (c.value == '\n')
      out += "\\n";
    else
      out += c.value < 0x100 ? fmt::format("\\x{:02x}", c.value) : fmt::format("\\u{:04x}", c.value);
    i += std::max<size_t>(c.length, 1);
  }
  return out;
}

std::string xml(std::string_view text) {
  std::string out;
  for (const char c : plain(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&apos;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string markdown(std::string_view text) {
  std::string out;
  const std::string safe = plain(text);
  for (size_t i = 0; i < safe.size(); ++i) {
    const char c = safe[i];
    // Dots, dashes and underscores inside words are left alone: they do nothing there, and paths stay readable.
    const bool in_word = i > 0 && i + 1 < safe.size() && std::isalnum(static_cast<unsigned char>(safe[i - 1])) &&
                         std::isalnum(static_cast<unsigned char>(safe[i + 1]));
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '@' || c == '#')
      out += fmt::format("{}<!-- -->", c);  // splits mentions and issue references
    else if (c == ':' && safe.compare(i, 3, "://") == 0)
      out += ":<!-- -->";
    else if (std::string_view("\\`*[]|~$!{}").find(c) != std::string_view::npos || (c == '_' && !in_word))
      out += fmt::format("\\{}", c);
    else
      out += c;
  }
  return out;
}

std::string markdown_code(std::string_view text) {
  const std::string safe = plain(text);
  if (safe.empty()) return "<code>&quot;&quot;</code>";
  const bool simple = std::all_of(safe.begin(), safe.end(), is_code_safe) && safe.front() != ' ' && safe.back() != ' ';
  if (simple) return fmt::format("`{}`", safe);
  std::string inner;
  for (const char c : safe) {
    if (std::isalnum(static_cast<unsigned char>(c)) || (c & 0x80) || c == ' ' || c == '.')
      inner += c;
    else
      inner += fmt::format("&#{};", static_cast<int>(c));
  }
  return fmt::format("<code>{}</code>", inner);
}

std::string number(std::optional<double> value) { return value ? fmt::format("{:.3g}", *value) : "–"; }

std::string share(std::optional<double> value) {
  if (!value) return "–";
  const std::string text = fmt::format("{:.4g} %", 100 * *value);
  return *value < 1 && text == "100 %" ? "<100 %" : text;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "×"));
}

std::string pad_right(std::string_view text, size_t width) {
  return std::string(text) + std::string(width - std::min(width, characters(text)), ' ');
}
std::string pad_left(std::string_view text, size_t width) {
  return std::string(width - std::min(width, characters(text)), ' ') + std::string(text);
}

}  // namespace parity
