// Names of boundaries (FORMAT.md, "Paths"): "blocks.0" is a module's result, "blocks.0[1]" one of several, and
// "blocks.0/add.1" an op's that ran in the module.
#pragma once
#include <cctype>
#include <string>
#include <string_view>

namespace parity {

/// Of the model itself: its result, or a further tensor of it ("[1]").
inline bool is_model_result(std::string_view path) { return path.empty() || path.starts_with("["); }

inline bool is_op_path(std::string_view path) { return path.find('/') != std::string_view::npos; }

/// "blocks.0" of all three.
inline std::string module_of(std::string_view path) {
  const size_t op = path.find('/');
  return std::string(path.substr(0, op == std::string_view::npos ? path.find('[') : op));
}

/// "blocks..attn" of "blocks.3.attn": the same in every layer.
inline std::string without_numbers(std::string path) {
  std::erase_if(path, [](unsigned char c) { return std::isdigit(c) != 0; });
  return path;
}

}  // namespace parity
