// Whatever goes wrong while files are read or judged says which files they were: LibTorch's complaints, and checks too
// far in to know, name none.
#pragma once
#include <exception>
#include <string>
#include <vector>

namespace parity {

/// Throws Error, one line: what `error` says, after the names of `files` unless it names one of them, or `other`,
/// already. A want of memory stays std::bad_alloc.
[[noreturn]] void throw_named(const std::vector<std::string>& files, const std::exception& error,
                              const std::string& other);

/// What `work` gives; what it throws names a file. No verdict is formed here.
template <class Work>
auto named(const std::vector<std::string>& files, const Work& work, const std::string& other = "") -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& error) {
    throw_named(files, error, other);
  }
}

}  // namespace parity
