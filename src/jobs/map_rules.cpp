#include "jobs/map_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/numbers_in_text.hpp"
#include "core/plain.hpp"

namespace parity {
namespace {

// Numbers that stand as a component or behind a '_' or '-': "h.3.", "layers_3", "Qcur-3"; and those that end a word in
// front of a module and what it holds: "stage3.attn.q". Nearer to the end they tell siblings apart: "fc1.weight".
std::vector<NumberInText> numbers(const std::string& text) {
  std::vector<NumberInText> found = numbers_in(text);
  const size_t leaf = text.find_last_of("./"),
               module = leaf == 0 || leaf == text.npos ? 0 : text.find_last_of("./", leaf - 1);
  std::erase_if(found, [&](const NumberInText& number) {
    const auto [begin, length] = number;
    const size_t end = begin + length;
    const bool glued = module != text.npos && end <= module;
    const bool opens = begin == 0 || glued || std::string_view("./_-[").find(text[begin - 1]) != std::string_view::npos;
    const bool closes =
        end == text.size() || std::string_view(glued ? "./_] " : "./] ").find(text[end]) != std::string_view::npos;
    return !opens || !closes;
  });
  return found;
}

std::string replaced(std::string text, NumberInText number, const std::string& by) {
  return text.replace(number.begin, number.length, by);
}

// Rules that differ in the `nth` number of their left side, on the right side in the same way, become one.
std::vector<MapRule> captured(const std::vector<MapRule>& rules, size_t nth, const std::string& name) {
  std::map<std::string, std::vector<size_t>> members;  // by the text of the rule they would become
  std::vector<std::vector<MapRule>> forms(rules.size());
  for (size_t r = 0; r < rules.size(); ++r) {
    const auto left = numbers(rules[r].left);
    if (left.size() <= nth) continue;
    const std::string value = rules[r].left.substr(left[nth].begin, left[nth].length);
    for (const NumberInText& number : numbers(rules[r].right)) {
      if (rules[r].right.compare(number.begin, number.length, value) != 0) continue;
      forms[r].push_back(
          {replaced(rules[r].left, left[nth], name), replaced(rules[r].right, number, name), rules[r].steps, true});
      members[forms[r].back().text()].push_back(r);
    }
  }
  std::vector<MapRule> out;
  std::set<std::string> written;
  for (size_t r = 0; r < rules.size(); ++r) {
    const MapRule* best = nullptr;
    for (const MapRule& form : forms[r])
      if (members[form.text()].size() > 1 && (!best || members[form.text()].size() > members[best->text()].size()))
        best = &form;
    if (best == nullptr)
      out.push_back(rules[r]);
    else if (written.insert(best->text()).second)
      out.push_back(*best);
  }
  return out;
}

bool gives(const NameMap& map, const MapRule& rule) {
  const auto target = map.find(rule.left == R"("")" ? "" : rule.left);
  return target && quoted_name(target->candidate) == rule.right && steps_text(target->layout) == rule.steps;
}

// A general rule that would give other names a target that is not theirs.
bool goes_too_far(const MapRule& rule, const std::vector<std::string>& others, const Unwanted& unwanted) {
  if (!rule.general || others.empty()) return false;
  const NameMap map = NameMap::parse(rule.text(), "the mapping");
  return std::any_of(others.begin(), others.end(), [&](const std::string& other) {
    const auto target = map.find(other);
    return target && unwanted(other, *target);
  });
}

}  // namespace

std::string MapRule::text() const { return fmt::format("{} = {}{}", left, right, steps); }

bool writable(const std::string& name) {
  return !name.empty() && name == plain(name) && name.find_first_of("#*{}\"= ()") == std::string::npos;
}

std::string quoted_name(const std::string& name) { return name.empty() ? "\"\"" : name; }

std::string steps_text(const Layout& layout) {
  const std::string text = layout.text();
  return text.empty() ? text : fmt::format(" {}", text);
}

std::vector<std::string> generalised(const std::vector<MapRule>& pairs, const std::vector<std::string>& others,
                                     const Unwanted& unwanted) {
  std::vector<MapRule> whole, parts;
  for (const MapRule& pair : pairs) (pair.left.find(' ') == std::string::npos ? whole : parts).push_back(pair);
  std::vector<MapRule> rules = whole;
  for (const auto& [nth, name] : {std::pair{0, "{i}"}, {0, "{j}"}, {1, "{k}"}, {1, "{l}"}})
    rules = captured(rules, nth, name);
  std::erase_if(rules, [&](const MapRule& rule) { return goes_too_far(rule, others, unwanted); });
  std::stable_sort(rules.begin(), rules.end(),
                   [](const MapRule& a, const MapRule& b) { return a.general > b.general; });
  std::vector<std::string> lines;
  std::string text;
  for (const MapRule& rule : rules) lines.push_back(rule.text()), text += rule.text() + "\n";
  const NameMap map = NameMap::parse(text, "the mapping");
  for (const MapRule& pair : whole)
    if (!gives(map, pair)) lines.push_back(pair.text());
  for (const auto& [nth, name] : {std::pair{0, "{i}"}, {0, "{j}"}}) parts = captured(parts, nth, name);
  for (const MapRule& part : parts) lines.push_back(part.text());
  return lines;
}

}  // namespace parity
