// JSON and HDF5 names, as far as events need them.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace parity::probe {

// Bytes of the UTF-8 sequence at the beginning of `text`; 0 when it is none (Unicode 15, table 3-7).
inline std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef)
    return follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf) && follows(2) ? 3 : 0;
  if (first >= 0xf0 && first <= 0xf4)
    return follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf) && follows(2) && follows(3) ? 4 : 0;
  return 0;
}

/// `text` as a JSON string; bytes that are not UTF-8 become U+FFFD.
inline std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    const char c = text[i];
    if (length == 0) {
      out += "\\ufffd";
    } else if (length == 1 && (c == '"' || c == '\\')) {
      (out += '\\') += c;
    } else if (length == 1 && static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  return out += '"';
}

inline std::string list_of(const std::vector<std::int64_t>& numbers) {
  std::string out = "[";
  for (const std::int64_t number : numbers) out += (out.size() > 1 ? "," : "") + std::to_string(number);
  return out + "]";
}

inline std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

/// `name` as one step of an HDF5 path: without "/", and not "." or empty, which mean the group itself.
inline std::string link_name(const std::string& name) {
  const std::string flat = replaced(name, "/", "%2F");
  if (flat.find_first_not_of('.') != std::string::npos) return flat;
  return flat.empty() ? "%" : replaced(flat, ".", "%2E");
}

}  // namespace parity::probe
