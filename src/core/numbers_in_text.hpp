// Whole numbers in names: layers, heads, calls.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

namespace parity {

struct NumberInText {
  size_t begin, length;
};

/// Each run of decimal digits, from left to right; runs of more than `longest` digits are hashes and left out.
std::vector<NumberInText> numbers_in(std::string_view text, size_t longest = std::string_view::npos);

}  // namespace parity
