// Names of parameters that are equal but for the numbers of layers.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace parity {

/// "blocks.1.norm2.weight": "blocks.#.norm2.weight", {1}. Of a module's own name numbers are part of it.
struct Numbered {
  std::string words;
  std::vector<int64_t> numbers;
};
Numbered numbered(const std::string& path);

}  // namespace parity
