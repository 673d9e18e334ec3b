#include "core/numbers_in_text.hpp"

#include <algorithm>

namespace parity {

std::vector<NumberInText> numbers_in(std::string_view text, size_t longest) {
  constexpr std::string_view kDigits = "0123456789";
  std::vector<NumberInText> found;
  for (size_t begin = text.find_first_of(kDigits); begin != text.npos;) {
    const size_t end = std::min(text.find_first_not_of(kDigits, begin), text.size());
    if (end - begin <= longest) found.push_back({begin, end - begin});
    begin = text.find_first_of(kDigits, end);
  }
  return found;
}

}  // namespace parity
