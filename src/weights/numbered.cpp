#include "weights/numbered.hpp"

#include <algorithm>
#include <cstdlib>

namespace parity {

Numbered numbered(const std::string& path) {
  const size_t leaf = path.rfind('.'), module = leaf == std::string::npos || leaf == 0 ? 0 : path.rfind('.', leaf - 1);
  const auto own = module == std::string::npos ? path.begin() : path.begin() + static_cast<ptrdiff_t>(module);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  Numbered name;
  for (auto c = path.begin(); c != path.end();) {
    const auto end = std::find_if_not(c, path.end(), is_digit);
    const bool alone = (c == path.begin() || *(c - 1) == '.') && (end == path.end() || *end == '.');
    if (c == end || (c >= own && !alone)) {
      name.words += *c++;
      continue;
    }
    name.words += '#';
    name.numbers.push_back(std::atoll(std::string(c, end).c_str()));
    c = end;
  }
  return name;
}

}  // namespace parity
