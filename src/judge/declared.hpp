// Rows that a user has declared (--accept-path): what they show is known, and they pass.
#pragma once
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "judge/limits.hpp"

namespace parity {

/// The first rule that one of these matches, paths or names of what was found. It may be "": a model's result has no
/// path.
std::optional<std::string> declaring_rule(const Thresholds& limits, std::initializer_list<std::string_view> texts);

/// "declared (--accept-path kv cache: fp16): kv cache: fp16"
std::string declared_text(std::string_view rule, std::string_view found);

/// What a row is declared by, beside its path.
struct Declarable {
  std::string name;
  bool by_size = false;  // it has the size alone of what that name does: no path declares it
};

/// A row that fails gate dtype_path passes if a rule declares it. What has a rounding's size and no more may be a fault
/// in fp32: who declares it has to know the name.
void pass_if_declared(OpResult& row, const Declarable& what, const Thresholds& limits);

/// The row passes, and says which rule declares what it shows.
void pass_as_declared(OpResult& row, const std::string& rule);

}  // namespace parity
