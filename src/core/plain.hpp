// Text that came out of files (paths, messages, model names) is hostile: it must not move a terminal's cursor, begin a
// new line of a report or of a test, or turn the order of what is beside it.
#pragma once
#include <string>
#include <string_view>

namespace parity {

/// Valid UTF-8 on one line: bad bytes, control characters and marks that reorder text become visible escapes such as
/// "\x1b" or "\u202e". Twice is as good as once.
std::string plain(std::string_view text);

}  // namespace parity
