#include "trace/operator.hpp"

#include <algorithm>
#include <array>

namespace parity {
namespace {

constexpr std::array<std::string_view, 10> kUninitialised{
    "empty",     "empty_like",        "empty_strided", "empty_permuted", "empty_quantized",
    "new_empty", "new_empty_strided", "resize",        "resize_",        "resize_as_"};

}  // namespace

std::optional<c10::OperatorHandle> find_operator(const std::string& name) {
  const size_t scope = name.find("::");
  const size_t dot = name.find('.', scope == std::string::npos ? 0 : scope);
  const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  return c10::Dispatcher::singleton().findSchema({name.substr(0, dot), overload == "default" ? "" : overload});
}

std::string operator_kind(std::string_view name) {
  if (const size_t scope = name.find("::"); scope != std::string_view::npos) name.remove_prefix(scope + 2);
  return std::string(name.substr(0, name.find('.')));
}

bool is_uninitialised(std::string_view kind) {
  return std::find(kUninitialised.begin(), kUninitialised.end(), kind) != kUninitialised.end();
}

bool is_range(std::string_view kind) { return kind == "arange"; }

bool is_selection(std::string_view kind) {
  static constexpr std::array kKinds{"nonzero", "nonzero_static", "argwhere", "masked_select", "sort", "argsort"};
  return std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
}

bool only_moves(std::string_view kind) {
  static constexpr std::array kKinds{"clone", "_unsafe_view", "expand",         "cat",       "stack",
                                     "index", "index_select", "gather",         "embedding", "repeat",
                                     "flip",  "roll",         "constant_pad_nd"};
  return std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
}

bool is_for_derivative(std::string_view kind, size_t output) {
  constexpr std::array kParts{"attention", "layer_norm", "group_norm", "batch_norm", "rms_norm", "_weight_norm"};
  return output > 0 && std::any_of(kParts.begin(), kParts.end(),
                                   [&](std::string_view part) { return kind.find(part) != std::string_view::npos; });
}

}  // namespace parity
