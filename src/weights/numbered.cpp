#include "weights/numbered.hpp"

#include <algorithm>
#include <cstdlib>

namespace parity {

Numbered numbered(const std::string& path) {
  const size_t leaf = path.find_last_of("./");
  const size_t module = leaf == std::string::npos || leaf == 0 ? 0 : path.find_last_of("./", leaf - 1);
  const auto own = module == std::string::npos ? path.begin() : path.begin() + static_cast<ptrdiff_t>(module);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_dot = [](char c) { return c == '.' || c == '/'; };
  Numbered name;
  for (auto c = path.begin(); c != path.end();) {
    const auto end = std::find_if_not(c, path.end(), is_digit);
    const bool alone = (c == path.begin() || is_dot(*(c - 1))) && (end == path.end() || is_dot(*end));
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
