#include "core/plain.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>

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

}  // namespace parity
