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

void pass_if_declared(OpResult& row, const Declarable& what, const Thresholds& limits) {
  if (row.gate != Gate::dtype_path) return;
  const auto by_path = declaring_rule(limits, {row.path});
  auto rule = what.name.empty() ? std::nullopt : declaring_rule(limits, {what.name});
  if (!rule && !what.by_size) rule = by_path;
  if (rule) return pass_as_declared(row, *rule);
  if (by_path)
    row.diagnosis += fmt::format(
        "; --accept-path {} does not declare a rounding that is known by its size alone: its "
        "name does, {}",
        *by_path, what.name);
}

void pass_as_declared(OpResult& row, const std::string& rule) {
  row.verdict = Verdict::pass;
  row.declared = rule;
  row.diagnosis = declared_text(rule, row.diagnosis);
}

}  // namespace parity
