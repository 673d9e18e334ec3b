// Lines of source that events name (probes/FORMAT.md, "Lines of source"): as text, or by the number of a note.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "dump/dump.hpp"

namespace parity {

class SourceLines {
 public:
  /// Reads the notes. Throws Error naming the event of one that is malformed. `dump` must outlive it.
  explicit SourceLines(const Dump& dump);

  /// Which of `texts` event `index` names under `key` ("src": the user's line, "lib": the library's); -1: none. Throws
  /// Error naming the event for anything but a text or the number of a note.
  int find(size_t index, const char* key);

  /// On one line, without control characters, of bounded length, files without their folders:
  /// "modeling_llama.py:312 in forward".
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  int add(const std::string& text);

  const Dump& dump_;
  std::vector<std::string> texts_;
  std::unordered_map<int64_t, int> numbers_;      // of a note -> index into texts_
  std::unordered_map<std::string, int> by_text_;  // as recorded -> index into texts_
};

/// "transformers/models/llama/modeling_llama.py:312 in forward" -> "modeling_llama.py:312 in forward"; other texts
/// stay.
std::string short_line(const std::string& text);

}  // namespace parity
