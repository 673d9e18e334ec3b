// Rows of report.html by column: 5,000 of them stay below 5 MB with the chart library, where objects by row took 17 MB.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ranges>

#include "core/statistics.hpp"
#include "report/causes.hpp"
#include "report/html.hpp"
#include "report/markup.hpp"

namespace parity {
namespace {

using nlohmann::json;

int digits_of(std::string_view statistic) {
  return statistic == "cosine" || statistic == "bitwise_equal_share" ? kNearOneDigits : kShownDigits;
}

// Unrounded: its bits are shown. JSON has no NaN.
json exact(double number) {
  return std::isfinite(number) ? json(number) : json(std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
}

/// `cell` of every row.
template <class Cell>
json column(const Report& report, const Cell& cell) {
  json out = json::array();
  for (const OpResult& op : report.ops) out.push_back(cell(op));
  return out;
}

/// {statistic: column}, those without any number left out.
json statistics(const Report& report, std::optional<Stats> OpResult::*side,
                std::optional<OracleStats> OpResult::*oracle) {
  json out = json::object();
  const auto add = [&](std::string_view name, const auto& number) {
    json numbers = column(report, number);
    if (std::any_of(numbers.begin(), numbers.end(), [](const json& x) { return !x.is_null(); }))
      out[std::string(name)] = std::move(numbers);
  };
  for (const auto& row : kStatistics)
    add(row.name, [&](const OpResult& op) {
      return op.*side ? brief((*(op.*side)).*row.field, digits_of(row.name)) : json(nullptr);
    });
  for (const auto& row : kOracleStatistics)
    add(row.name, [&](const OpResult& op) { return op.*oracle ? brief((*(op.*oracle)).*row.field) : json(nullptr); });
  for (const auto& [name, field] :
       {std::pair{"count", &Stats::count}, std::pair{"nan_reference", &Stats::nan_reference},
        std::pair{"nan_candidate", &Stats::nan_candidate}, std::pair{"special_mismatch", &Stats::special_mismatch},
        std::pair{"zeros_reference", &Stats::zeros_reference}})
    add(name, [&, field = field](const OpResult& op) { return op.*side ? json((*(op.*side)).*field) : json(nullptr); });
  return out;
}

json limits(const OpResult& op, HtmlStrings& strings) {
  json out = json::array();
  for (const Limit& l : op.limits)
    for (json& cell : std::vector<json>{strings(l.statistic), brief(l.value, kNearOneDigits), l.at_least ? 1 : 0,
                                        brief(l.measured, digits_of(l.statistic)), strings(l.origin)})
      out.push_back(std::move(cell));
  return out;
}

json explanations(const OpResult& op, size_t most, HtmlStrings& strings) {
  json out = json::array();
  for (const Explanation& e : op.explanations | std::views::take(most))
    for (json& cell : std::vector<json>{strings(e.change.fault), strings(e.change.detail()), strings(gate_name(e.gate)),
                                        brief(e.amplitude), brief(e.z), brief(e.explained), brief(e.rest),
                                        brief(e.null_amplitude), brief(e.detectable)})
      out.push_back(std::move(cell));
  return out;
}

json histogram(const std::optional<Histogram>& h) {
  if (!h) return nullptr;
  json out = {h->equal, h->lowest};
  for (const int64_t n : h->counts) out.push_back(n);
  return out;
}

json elements(const OpResult& op, size_t most) {
  json out = json::array();
  for (const Element& e : op.worst | std::views::take(most))
    out.push_back({e.index, exact(e.reference), exact(e.candidate)});
  return out;
}

// Command lines of a run differ by the path alone.
std::string rerun_pattern(const OpResult& op) {
  const std::string text = plain(op.rerun), path = fmt::format("'{}'", plain(op.path));
  const size_t at = text.find(path);
  if (at == std::string::npos) return text;
  const std::string_view whole = text;
  return fmt::format("{}\x1f{}", whole.substr(0, at), whole.substr(at + path.size()));
}

}  // namespace

json brief(std::optional<double> number, int digits) {
  if (!number) return nullptr;
  if (!std::isfinite(*number)) return std::isnan(*number) ? "nan" : *number > 0 ? "inf" : "-inf";
  if (*number == 0 || std::abs(*number) == 1) return static_cast<int>(*number);
  const std::string text = fmt::format("{:.{}g}", *number, digits);
  double rounded = *number;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

int64_t HtmlStrings::as_is(std::string text) {
  const auto [place, is_new] = places_.try_emplace(std::move(text), static_cast<int64_t>(list_.size()));
  if (is_new) list_.push_back(place->first);
  return place->second;
}

json html_ops(const Report& report, size_t most, HtmlStrings& strings) {
  const auto text = [&](std::string OpResult::*field) {
    return column(report, [&](const OpResult& op) { return strings(op.*field); });
  };
  const auto number = [&](std::optional<double> OpResult::*field) {
    return column(report, [&](const OpResult& op) { return brief(op.*field); });
  };
  return {{"n", report.ops.size()},
          {"index", column(report, [](const OpResult& op) { return op.index; })},
          {"reference", text(&OpResult::reference)},
          {"path", text(&OpResult::path)},
          {"candidate", text(&OpResult::candidate_path)},
          {"call", column(report, [](const OpResult& op) { return op.call; })},
          {"kind", text(&OpResult::kind)},
          {"dtype", text(&OpResult::dtype)},
          {"tensor", text(&OpResult::tensor_dtype)},
          {"shape", column(report, [&](const OpResult& op) { return strings(shape_text(op.shape)); })},
          {"verdict", column(report, [&](const OpResult& op) { return strings(verdict_name(op.verdict)); })},
          {"gate", column(report, [&](const OpResult& op) { return strings(gate_name(op.gate)); })},
          {"diagnosis", text(&OpResult::diagnosis)},
          {"logic", column(report, [](const OpResult& op) { return brief(op.logic.rel_l2); })},
          {"logic_limit", column(report, [](const OpResult& op) { return brief(op.logic.limit); })},
          {"forced", statistics(report, &OpResult::forced, &OpResult::oracle)},
          {"free", statistics(report, &OpResult::free, &OpResult::free_oracle)},
          {"limits", column(report, [&](const OpResult& op) { return limits(op, strings); })},
          {"amplification", number(&OpResult::amplification)},
          {"predicted", number(&OpResult::predicted_free)},
          {"blame", number(&OpResult::blame)},
          {"explanations", column(report, [&](const OpResult& op) { return explanations(op, most, strings); })},
          {"worst", column(report, [&](const OpResult& op) { return elements(op, most); })},
          {"histogram", column(report, [](const OpResult& op) { return histogram(op.histogram); })},
          {"source", text(&OpResult::source)},
          {"candidate_source", text(&OpResult::candidate_source)},
          {"pairing", column(report, [&](const OpResult& op) { return strings(pairing_text(op)); })},
          {"rerun", column(report, [&](const OpResult& op) { return strings.as_is(rerun_pattern(op)); })}};
}

}  // namespace parity
