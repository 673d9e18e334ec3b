#include "judge/declared.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/glob.hpp"

namespace parity {

std::optional<std::string> declaring_rule(const Thresholds& limits, std::initializer_list<std::string_view> texts) {
  for (const std::string& rule : limits.accepted)
    if (std::any_of(texts.begin(), texts.end(), [&](std::string_view text) { return matches_layer(text, rule); }))
      return rule;
  return std::nullopt;
}

std::string declared_text(std::string_view rule, std::string_view found) {
  return fmt::format("declared (--accept-path {}): {}", rule, found);
}

void pass_as_declared(OpResult& row, const std::string& rule) {
  row.verdict = Verdict::pass;
  row.declared = rule;
  row.diagnosis = declared_text(rule, row.diagnosis);
}

}  // namespace parity
