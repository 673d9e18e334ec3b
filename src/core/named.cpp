#include "core/named.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>

#include "core/error.hpp"

namespace parity {

void throw_named(const std::vector<std::string>& files, const std::exception& error, const std::string& other) {
  std::string text = error.what();
  const bool ours = dynamic_cast<const Error*>(&error) != nullptr;
  if (!ours) text = text.substr(0, text.find('\n'));  // LibTorch's goes on with a backtrace
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr || text.find("can't allocate memory") != std::string::npos)
    throw std::bad_alloc();
  const auto names = [&](const std::string& file) { return !file.empty() && text.find(file) != std::string::npos; };
  if (names(other) || std::any_of(files.begin(), files.end(), names)) throw Error(text);
  throw Error(fmt::format("{}: {}", fmt::join(files, ", "), text));
}

}  // namespace parity
