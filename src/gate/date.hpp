// Days, as acceptances have them.
#pragma once
#include <string>

namespace parity {

/// Is `text` a day of the calendar, written "2026-12-31"? Such texts compare as the days do.
bool is_day(const std::string& text);

}  // namespace parity
