// Elementwise steps, and those of them that bend: what an activation is made of.
#pragma once
#include <algorithm>
#include <array>
#include <string_view>

#include "trace/program.hpp"

namespace parity {

inline std::string_view out_of_place(const Op& op) {  // "relu" of "relu_"
  return std::string_view(op.kind).substr(0, op.kind.find_last_not_of('_') + 1);
}

inline bool is_activation_op(const Op& op) {
  static constexpr std::array<std::string_view, 8> kKinds{"silu",     "gelu",      "relu", "sigmoid",
                                                          "hardtanh", "hardswish", "tanh", "erf"};
  return std::find(kKinds.begin(), kKinds.end(), out_of_place(op)) != kKinds.end();
}

inline bool is_elementwise(const Op& op) {
  static constexpr std::array<std::string_view, 17> kKinds{
      "mul",   "add",          "sub",     "pow",       "neg",       "exp",   "div",    "_to_copy", "clone",
      "clamp", "_unsafe_view", "reshape", "clamp_max", "clamp_min", "alias", "detach", "view"};
  return is_activation_op(op) || std::find(kKinds.begin(), kKinds.end(), out_of_place(op)) != kKinds.end();
}

}  // namespace parity
