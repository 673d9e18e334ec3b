#include "report/markup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace parity {
namespace {

size_t characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

bool is_code_safe(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) ||
         std::string_view(" ._/:,;=+-*()[]{}'\"#%@!?^~").find(c) != std::string_view::npos || (c & 0x80);
}

}  // namespace

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

std::string shortened_text(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && (text[end] & 0xc0) == 0x80) --end;  // not within a character
  return text.substr(0, end) + "…";
}

std::string pad_right(std::string_view text, size_t width) {
  return std::string(text) + std::string(width - std::min(width, characters(text)), ' ');
}
std::string pad_left(std::string_view text, size_t width) {
  return std::string(width - std::min(width, characters(text)), ' ') + std::string(text);
}

}  // namespace parity
