// Values that show nothing: constants, zeros, nothing finite.
#pragma once
#include <string>

#include "core/stats.hpp"

namespace parity {

/// Why agreement on this tensor shows little: "constant", "more than 90 % zero", …; "" where it does show something.
/// Such a value is listed under coverage; it makes no verdict by itself.
std::string why_not_exercised(const Stats& stats);

}  // namespace parity
