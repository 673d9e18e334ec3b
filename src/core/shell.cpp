#include "core/shell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace parity {
namespace {

bool means_nothing(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_@%+=:,./-").find(c) != std::string::npos;
}

}  // namespace

std::string shell_word(std::string_view text) {
  std::string out = "'";
  for (const char c : text) c == '\'' ? void(out += "'\\''") : out.push_back(c);
  return out + "'";
}

std::string shell_word_if_needed(std::string_view text) {
  const bool bare = !text.empty() && std::all_of(text.begin(), text.end(), means_nothing);
  return bare ? std::string(text) : shell_word(text);
}

std::vector<std::string> shell_words(std::string_view line) {
  std::vector<std::string> words;
  bool open = false;  // a word has begun, though it may be empty
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      open = false;
      continue;
    }
    if (!open) words.emplace_back(), open = true;
    if (c == quote)
      quote = 0;
    else if (quote == 0 && (c == '\'' || c == '"'))
      quote = c;
    else if (c == '\\' && quote != '\'' && i + 1 < line.size())
      words.back() += line[++i];
    else
      words.back() += c;
  }
  return words;
}

std::string pattern_for(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) out += '\\';
    out += c == ',' ? '?' : c;  // a comma ends a pattern
  }
  return out;
}

std::string options_in(std::string_view line, std::initializer_list<std::string_view> options) {
  const std::vector<std::string> words = shell_words(line);
  std::string out;
  const auto add = [&](std::string_view option, std::string_view value) {
    out += fmt::format(" {} {}", option, shell_word(value));
  };
  for (size_t i = 0; i < words.size(); ++i)
    for (const std::string_view option : options) {
      if (words[i] == option && i + 1 < words.size())
        add(option, words[++i]);
      else if (words[i].size() > option.size() && words[i].starts_with(option) && words[i][option.size()] == '=')
        add(option, std::string_view(words[i]).substr(option.size() + 1));
      else
        continue;
      break;
    }
  return out;
}

}  // namespace parity
