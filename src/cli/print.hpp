// Printing for people. Strings may have come out of a file: here, where they leave for the terminal, every one is made
// plain, so that no caller has to remember it. Nothing else in this folder prints (a test holds that).
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/plain.hpp"

namespace parity::cli {

/// Lines put together by `text_of`, or by a sink that makes plain what it quotes: printed as they are.
struct Assembled {
  std::string text;
};

template <class T>
auto shown(const T& value) {
  if constexpr (std::is_same_v<T, Assembled>) {
    return std::string_view(value.text);
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return plain(value);
  } else {
    static_assert(std::is_arithmetic_v<T>, "numbers, strings, or lines that are Assembled");
    return value;
  }
}

template <class... Args>
using Format = fmt::format_string<decltype(shown(std::declval<const Args&>()))...>;

/// As fmt::format, every string among the arguments made plain.
template <class... Args>
std::string text_of(Format<Args...> format, const Args&... args) {
  return fmt::format(format, shown(args)...);
}

/// To standard output.
template <class... Args>
void print(Format<Args...> format, const Args&... args) {
  std::fputs(text_of<Args...>(format, args...).c_str(), stdout);
}

/// To standard error.
template <class... Args>
void print_error(Format<Args...> format, const Args&... args) {
  std::fputs(text_of<Args...>(format, args...).c_str(), stderr);
}

}  // namespace parity::cli
