// A number that decides something, and why it is that number.
#pragma once
#include <string_view>

namespace parity {

struct Constant {
  double value;
  std::string_view origin;  // what measured it, or what it follows from

  constexpr operator double() const { return value; }  // in a formula it is the number
};

}  // namespace parity
