#include "gate/date.hpp"

#include <algorithm>
#include <chrono>

namespace parity {

bool is_day(const std::string& text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  const auto digits = [&](size_t from, size_t count) {
    return std::all_of(text.begin() + static_cast<long>(from), text.begin() + static_cast<long>(from + count),
                       [](char c) { return c >= '0' && c <= '9'; });
  };
  if (!digits(0, 4) || !digits(5, 2) || !digits(8, 2)) return false;
  const auto part = [&](size_t from, size_t count) { return std::stoi(text.substr(from, count)); };
  using namespace std::chrono;
  return year_month_day{year{part(0, 4)}, month{static_cast<unsigned>(part(5, 2))},
                        day{static_cast<unsigned>(part(8, 2))}}
      .ok();
}

}  // namespace parity
