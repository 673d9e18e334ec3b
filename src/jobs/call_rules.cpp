#include "jobs/call_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "core/numbers_in_text.hpp"
#include "jobs/map_rules.hpp"
#include "pair/name_map.hpp"

namespace parity {
namespace {

constexpr const char* kCounted = "{n}";

MapRule rule_of(const CallPair& pair) {
  return {quoted_name(pair.path) + call_text(pair.call),
          quoted_name(pair.candidate) + (pair.candidate_call == 0 ? "" : call_text(pair.candidate_call)), pair.steps};
}

// The candidate's name with the number of the call taken out, as it may be counted in any of its numbers.
std::vector<std::string> counted_names(const CallPair& pair) {
  std::vector<std::string> names;
  if (pair.candidate_call != 0) return names;
  for (const auto& [begin, length] : numbers_in(pair.candidate))
    if (pair.candidate.substr(begin, length) == std::to_string(pair.call))
      names.push_back(std::string(pair.candidate).replace(begin, length, kCounted));
  return names;
}

// Of one path: one rule for all its calls.
std::optional<MapRule> counted(const std::vector<CallPair>& calls) {
  std::map<std::string, size_t> names;
  for (const CallPair& pair : calls)
    if (pair.steps == calls.front().steps)
      for (const std::string& name : counted_names(pair)) ++names[name];
  const auto common = std::ranges::find(names, calls.size(), [](const auto& name) { return name.second; });
  if (calls.size() < 2 || common == names.end()) return std::nullopt;
  return MapRule{fmt::format("{} call({})", quoted_name(calls.front().path), kCounted), common->first,
                 calls.front().steps};
}

bool gives(const NameMap& map, const CallPair& pair) {
  const auto target = map.find(pair.path, pair.call);
  return target && target->candidate == pair.candidate && target->call == pair.candidate_call &&
         steps_text(target->layout) == pair.steps;
}

}  // namespace

std::vector<std::string> call_rules(const std::vector<CallPair>& pairs,
                                    const std::vector<std::pair<std::string, int>>& others,
                                    const std::function<bool(const std::string& candidate, int call)>& known) {
  std::map<std::string, std::vector<CallPair>> by_path;
  for (const CallPair& pair : pairs) by_path[pair.path].push_back(pair);
  std::vector<MapRule> rules;
  for (const auto& [path, calls] : by_path)
    if (auto rule = counted(calls))
      rules.push_back(std::move(*rule));
    else
      for (const CallPair& pair : calls) rules.push_back(rule_of(pair));
  std::vector<std::string> lines = generalised(rules);
  const NameMap map = NameMap::parse(fmt::format("{}", fmt::join(lines, "\n")), "the mapping");
  const bool too_far = std::ranges::any_of(others, [&](const auto& other) {
    const auto target = map.find(other.first, other.second);
    return target && known(target->candidate, target->call);
  });
  if (!too_far && std::ranges::all_of(pairs, [&](const CallPair& pair) { return gives(map, pair); })) return lines;
  lines.clear();
  for (const CallPair& pair : pairs) lines.push_back(rule_of(pair).text());
  return lines;
}

}  // namespace parity
