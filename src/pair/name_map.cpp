#include "pair/name_map.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "core/error.hpp"

namespace parity {
namespace {

std::string trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

// Of a line that may be a whole binary file.
std::string beginning_of(const std::string& line) { return line.size() <= 80 ? line : line.substr(0, 77) + "..."; }

std::vector<int64_t> integers(const std::string& text, const std::string& where) {
  std::vector<int64_t> numbers;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    try {
      numbers.push_back(std::stoll(part));
    } catch (const std::exception&) {
      throw Error(fmt::format("{}: '{}' is not a list of integers", where, text));
    }
  }
  return numbers;
}

constexpr const char* kRoot = "\"\"";  // the root's result

// What stands behind a name.
struct Steps {
  Layout layout;
  std::string call;  // " call(3)"; "" for all calls
};

// Takes the trailing `name(…)` off `text`; nullopt when there is none.
std::optional<std::string> take_call(std::string& text, const std::string& name) {
  const size_t at = text.rfind(" " + name + "(");
  if (at == std::string::npos || text.back() != ')') return std::nullopt;
  const std::string inside = text.substr(at + name.size() + 2, text.size() - at - name.size() - 3);
  if (inside.find(')') != std::string::npos) return std::nullopt;
  text = trim(std::string_view(text).substr(0, at));
  return inside;
}

bool is_permutation_of_axes(std::vector<int64_t> axes) {
  std::sort(axes.begin(), axes.end());
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<int64_t>(i)) return false;
  return true;
}

std::array<int64_t, 3> take_three(const std::string& inside, const std::string& where, const char* form) {
  const auto numbers = integers(inside, where);
  if (numbers.size() != 3) throw Error(fmt::format("{}: expected {}, got '{}'", where, form, inside));
  return {numbers[0], numbers[1], numbers[2]};
}

std::vector<int64_t> take_shape(const std::string& inside, const std::string& where) {
  const auto shape = integers(inside, where);
  if (shape.empty() || std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < -1; }) ||
      std::count(shape.begin(), shape.end(), -1) > 1)
    throw Error(fmt::format("{}: '{}' is not a shape (lengths, -1 once)", where, inside));
  return shape;
}

// A number, or what captures one.
bool names_call(const std::string& inside) {
  if (inside.size() > 2 && inside.front() == '{' && inside.back() == '}') return inside.find('}') + 1 == inside.size();
  return !inside.empty() && inside.size() < 10 &&
         std::ranges::all_of(inside, [](char c) { return c >= '0' && c <= '9'; });
}

Steps take_steps(std::string& text, const std::string& where) {
  Steps steps;
  Layout& layout = steps.layout;
  for (bool found = true; found;) {
    found = false;
    if (auto inside = take_call(text, "call")) {
      if (!names_call(*inside)) throw Error(fmt::format("{}: call({}) must be call(3) or call({{n}})", where, *inside));
      steps.call = " call(" + *inside + ")";
      found = true;
    }
    if (const auto inside = take_call(text, "perm")) {
      layout.permutation = integers(*inside, where);
      if (!is_permutation_of_axes(layout.permutation))
        throw Error(fmt::format("{}: perm({}) is not a permutation of the axes 0, 1, …", where, *inside));
      found = true;
    }
    if (const auto inside = take_call(text, "split")) {
      layout.split = take_three(*inside, where, "split(axis, part, parts)");
      const auto [axis, part, parts] = *layout.split;
      if (part < 0 || part >= parts)
        throw Error(
            fmt::format("{}: split({}) must be split(axis, part, parts) with 0 <= part < parts", where, *inside));
      found = true;
    }
    if (const auto inside = take_call(text, "slice")) {
      layout.slice = take_three(*inside, where, "slice(axis, begin, length)");
      if ((*layout.slice)[1] < 0 || (*layout.slice)[2] < 1)
        throw Error(fmt::format("{}: slice({}) must begin at 0 or later and have a length", where, *inside));
      found = true;
    }
    for (const auto& [name, shape] : {std::pair{"view", &layout.view}, std::pair{"reshape", &layout.reshape}})
      if (const auto inside = take_call(text, name)) *shape = take_shape(*inside, where), found = true;
  }
  return steps;
}

}  // namespace

std::string call_text(int call) { return fmt::format(" call({})", call); }

NameMap::Rule NameMap::parse_rule(const std::string& text, const std::string& where) {
  const size_t equals = text.find(" = ");
  if (equals == std::string::npos)
    throw Error(fmt::format("{}: expected 'REFERENCE = CANDIDATE', got '{}'", where, beginning_of(text)));
  Rule rule;
  rule.text = text;
  std::string left = trim(std::string_view(text).substr(0, equals));
  rule.target = trim(std::string_view(text).substr(equals + 3));
  const Steps right = take_steps(rule.target, where), own = take_steps(left, where);
  rule.layout = right.layout;
  const Layout& part = own.layout;
  if (!part.permutation.empty() || !part.view.empty() || !part.reshape.empty())
    throw Error(fmt::format("{}: only split(…) or slice(…) may stand on the left", where));
  rule.part = part.split || part.slice;
  rule.of_call = !own.call.empty();
  if (rule.target == kRoot) rule.target.clear();
  rule.target += right.call;
  const std::string source = (left == kRoot ? "" : left) + own.call;
  rule.prefix = source.substr(0, source.find_first_of("*{"));
  std::string regex;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '*') {
      regex += "(.*)";
      rule.captures.emplace_back("*");
    } else if (source[i] == '{') {
      const size_t close = source.find('}', i);
      if (close == std::string::npos) throw Error(fmt::format("{}: '{{' without '}}'", where));
      const std::string name = source.substr(i + 1, close - i - 1);
      const auto known = std::find(rule.captures.begin(), rule.captures.end(), name);
      regex += known == rule.captures.end() ? "([^./]+)" : fmt::format("\\{}", known - rule.captures.begin() + 1);
      if (known == rule.captures.end()) rule.captures.push_back(name);
      i = close;
    } else {
      if (std::string_view(".^$|()[]+?\\").find(source[i]) != std::string_view::npos) regex += '\\';
      regex += source[i];
    }
  }
  rule.pattern = std::regex(regex, std::regex::optimize);
  return rule;
}

NameMap NameMap::parse(std::string_view text, const std::string& origin) {
  NameMap map;
  map.origin_ = origin;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string rule = trim(std::string_view(line).substr(0, line.find('#')));
    if (rule.empty()) continue;
    map.rules_.push_back(parse_rule(rule, fmt::format("{}:{}", origin, number)));
    map.rules_.back().line = number;
  }
  return map;
}

std::optional<NameMap::Target> NameMap::apply(const Rule& rule, const Name& reference) const {
  if (rule.of_call && !reference.call) return std::nullopt;
  const std::string source = rule.of_call ? reference.path + call_text(*reference.call) : reference.path;
  if (!source.starts_with(rule.prefix)) return std::nullopt;
  std::smatch match;
  if (!std::regex_match(source, match, rule.pattern)) return std::nullopt;
  std::string candidate;
  size_t star = 0;
  for (size_t i = 0; i < rule.target.size(); ++i) {
    if (rule.target[i] != '*' && rule.target[i] != '{') {
      candidate += rule.target[i];
      continue;
    }
    std::string wanted = "*";
    size_t skip = star;
    if (rule.target[i] == '{') {
      const size_t close = rule.target.find('}', i);
      wanted = rule.target.substr(i + 1, close - i - 1);
      i = close == std::string::npos ? rule.target.size() : close;
      skip = 0;
    } else {
      ++star;
    }
    bool found = false;
    for (size_t g = 0; g < rule.captures.size() && !found; ++g)
      if (rule.captures[g] == wanted && skip-- == 0) candidate += match[g + 1].str(), found = true;
    if (!found)
      throw Error(fmt::format("{}:{}: '{}' on the right has no counterpart on the left", origin_, rule.line, wanted));
  }
  const auto call = take_call(candidate, "call");
  if (call && !(names_call(*call) && call->front() != '{'))
    throw Error(fmt::format("{}:{}: '{}' is not the number of a call", origin_, rule.line, *call));
  return Target{candidate, rule.layout, rule.line,
                call           ? std::stoi(*call)
                : rule.of_call ? 0
                               : reference.call.value_or(0),
                rule.of_call};
}

std::optional<NameMap::Target> NameMap::find(const std::string& reference, std::optional<int> call) const {
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule)
    if (!rule->part)
      if (auto target = apply(*rule, {reference, call})) return target;
  return std::nullopt;
}

std::vector<NameMap::Target> NameMap::find_parts(const std::string& reference) const {
  std::vector<Target> targets;
  for (const Rule& rule : rules_)
    if (rule.part)
      if (auto target = apply(rule, {reference})) targets.push_back(std::move(*target));
  return targets;
}

void NameMap::require_all_used(const std::vector<Name>& references) const {
  std::vector<bool> used(rules_.size(), false);
  for (const Name& reference : references)
    for (size_t r = 0; r < rules_.size(); ++r)
      if (!used[r] && apply(rules_[r], reference)) used[r] = true;
  for (size_t r = 0; r < rules_.size(); ++r)
    if (!used[r])
      throw Error(fmt::format("{}:{}: the rule '{}' matches nothing in the reference", origin_, rules_[r].line,
                              rules_[r].text));
}

std::pair<std::string, int> counterpart_of(const std::optional<NameMap::Target>& target, const std::string& path,
                                           int call) {
  return target ? std::pair(target->candidate, target->call) : std::pair(path, call);
}

std::vector<NameMap::Name> weights_and_owners(const std::vector<std::string>& weights) {
  std::vector<NameMap::Name> names;
  for (const std::string& weight : weights) {
    names.push_back({weight});
    const size_t dot = weight.find_last_of("./");
    if (dot != std::string::npos && (names.size() < 2 || names[names.size() - 2].path != weight.substr(0, dot)))
      names.push_back({weight.substr(0, dot)});
  }
  return names;
}

}  // namespace parity
