#include "report/limit_use.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/statistics.hpp"
#include "report/markup.hpp"

namespace parity {

std::optional<double> measured_against(const OpResult& op, const Limit& limit) {
  if (limit.measured) return limit.measured;
  if (limit.statistic == "own_inputs_rel_l2") return op.free_oracle ? op.free_oracle->candidate_error : std::nullopt;
  if (!op.forced) return std::nullopt;
  if (const auto value = statistic_of(*op.forced, kStatistics, limit.statistic)) return value;
  return op.oracle ? statistic_of(*op.oracle, kOracleStatistics, limit.statistic) : std::nullopt;
}

std::optional<double> share_of_limit(const OpResult& op, const Limit& limit) {
  const auto measured = measured_against(op, limit);
  // A gain above its limit fails only when it is significant, too: its size alone says nothing.
  if (!measured || (limit.statistic == "gain" && op.diagnosis.find("gain: values") == std::string::npos))
    return std::nullopt;
  const double amount = limit.at_least ? 1 - *measured : std::abs(*measured);
  const double allowed = limit.at_least ? 1 - limit.value : limit.value;
  return amount <= 0 ? 0 : amount / std::max(allowed, 0.0);
}

std::optional<double> share_of_limits(const OpResult& op) {
  if (op.verdict == Verdict::pass && op.declared) return std::nullopt;  // not by its limits
  std::optional<double> largest;
  const auto keep = [&](std::optional<double> share) {
    if (share && (!largest || *share > *largest)) largest = share;
  };
  for (const Limit& limit : op.limits) keep(share_of_limit(op, limit));
  if (op.logic.rel_l2 && op.logic.limit) keep(*op.logic.rel_l2 == 0 ? 0 : *op.logic.rel_l2 / *op.logic.limit);
  return largest;
}

std::string limit_line(const OpResult& op, const Limit& l) {
  return fmt::format("{} {} (must be {} {:.3g}; {})", l.statistic, number(measured_against(op, l)),
                     l.at_least ? ">=" : "<=", l.value, l.origin);
}

std::vector<std::string> broken_limit_lines(const OpResult& op) {
  std::vector<std::string> out;
  if (op.logic.rel_l2 && op.logic.limit && *op.logic.rel_l2 > *op.logic.limit)
    out.push_back(fmt::format("fp64 logic: rel_l2 {} (must be <= {:.3g})", number(op.logic.rel_l2), *op.logic.limit));
  for (const Limit& l : op.limits)
    if (share_of_limit(op, l).value_or(0) > 1) out.push_back(limit_line(op, l));
  return out;
}

std::string limits_text(const OpResult& op) {
  std::vector<std::string> parts;
  for (const Limit& l : op.limits)
    parts.push_back(fmt::format("{} {} {:.3g}", l.statistic, l.at_least ? "≥" : "≤", l.value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace parity
