#include "weights/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.hpp"

namespace parity {
namespace {

struct Rule {
  std::string left, right, steps;  // steps: " perm(1,0)"
  bool general = false;
  std::string text() const { return fmt::format("{} = {}{}", left, right, steps); }
};

using Run = std::pair<size_t, size_t>;  // begin, length

// Numbers that stand as a component or behind a '_': "h.3.", "layers_3".
std::vector<Run> numbers(const std::string& text) {
  const auto digit = [&](size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  std::vector<Run> runs;
  for (size_t begin = 0; begin < text.size(); ++begin) {
    if (!digit(begin)) continue;
    size_t end = begin;
    while (digit(end)) ++end;
    const bool opens = begin == 0 || std::string("./_[").find(text[begin - 1]) != std::string::npos;
    const bool closes = end == text.size() || std::string("./]").find(text[end]) != std::string::npos;
    if (opens && closes) runs.emplace_back(begin, end - begin);
    begin = end;
  }
  return runs;
}

std::string replaced(std::string text, Run run, const std::string& by) {
  return text.replace(run.first, run.second, by);
}

// Rules that differ in the `nth` number of their left side, on the right side in the same way, become one.
std::vector<Rule> captured(const std::vector<Rule>& rules, size_t nth, const std::string& name) {
  std::map<std::string, std::vector<size_t>> members;  // by the text of the rule they would become
  std::vector<std::vector<Rule>> forms(rules.size());
  for (size_t r = 0; r < rules.size(); ++r) {
    const auto left = numbers(rules[r].left);
    if (left.size() <= nth) continue;
    const std::string value = rules[r].left.substr(left[nth].first, left[nth].second);
    for (const Run& run : numbers(rules[r].right)) {
      if (rules[r].right.compare(run.first, run.second, value) != 0) continue;
      forms[r].push_back(
          {replaced(rules[r].left, left[nth], name), replaced(rules[r].right, run, name), rules[r].steps, true});
      members[forms[r].back().text()].push_back(r);
    }
  }
  std::vector<Rule> out;
  std::set<std::string> written;
  for (size_t r = 0; r < rules.size(); ++r) {
    const Rule* best = nullptr;
    for (const Rule& form : forms[r])
      if (members[form.text()].size() > 1 && (!best || members[form.text()].size() > members[best->text()].size()))
        best = &form;
    if (best == nullptr)
      out.push_back(rules[r]);
    else if (written.insert(best->text()).second)
      out.push_back(*best);
  }
  return out;
}

bool writable(const std::string& name) {
  return !name.empty() && name.find_first_of("#*{}\"= ()") == std::string::npos;
}

std::string steps_text(const Layout& layout) {
  const std::string text = layout.text();
  return text.empty() ? text : fmt::format(" {}", text);
}

bool gives(const NameMap& map, const Rule& rule) {
  const auto target = map.find(rule.left);
  return target && target->candidate == rule.right && steps_text(target->layout) == rule.steps;
}

// Few rules for many pairs; what they get wrong, or parts of reference tensors, follows one by one (later lines win).
std::vector<std::string> generalised(const std::vector<Rule>& pairs) {
  std::vector<Rule> whole, parts;
  for (const Rule& pair : pairs) (pair.left.find(' ') == std::string::npos ? whole : parts).push_back(pair);
  std::vector<Rule> rules = whole;
  for (const auto& [nth, name] : {std::pair{0, "{i}"}, {0, "{j}"}, {1, "{k}"}, {1, "{l}"}})
    rules = captured(rules, nth, name);
  std::stable_sort(rules.begin(), rules.end(), [](const Rule& a, const Rule& b) { return a.general > b.general; });
  std::vector<std::string> lines;
  std::string text;
  for (const Rule& rule : rules) lines.push_back(rule.text()), text += rule.text() + "\n";
  const NameMap map = NameMap::parse(text, "the mapping");
  for (const Rule& pair : whole)
    if (!gives(map, pair)) lines.push_back(pair.text());
  for (const auto& [nth, name] : {std::pair{0, "{i}"}, {0, "{j}"}}) parts = captured(parts, nth, name);
  for (const Rule& part : parts) lines.push_back(part.text());
  return lines;
}

std::string part_text(const Slice& slice, const std::vector<int64_t>& shape) {
  const auto [axis, begin, length] = slice;
  if (shape[axis] % length == 0 && begin % length == 0)
    return fmt::format(" split({},{},{})", axis, begin / length, shape[axis] / length);
  return fmt::format(" slice({},{},{})", axis, begin, length);
}

bool inside(const std::string& path, const std::string& module) {
  return path == module || (path.starts_with(module) && (path[module.size()] == '.' || path[module.size()] == '/'));
}

// Which module of one side is which of the other's, as far as their parameters tell.
class Modules {
 public:
  Modules(const AuditResult& audit, const std::vector<Parameter>& mine, const std::vector<Parameter>& theirs)
      : audit_(audit), mine_(mine), theirs_(theirs) {}

  std::vector<Rule> rules(std::vector<std::string>& left_out) const {
    std::vector<Rule> out;
    std::map<std::string, std::set<std::string>> targets;
    std::map<std::string, bool> permuted;
    std::vector<std::string> order;
    for (const WeightPair& pair : audit_.pairs) {
      const std::string module = owner_of(mine_[pair.reference].name);
      if (!writable(module) || !writable(owner_of(theirs_[pair.candidate].name))) continue;
      if (!targets.contains(module)) order.push_back(module);
      targets[module].insert(owner_of(theirs_[pair.candidate].name));
      const auto& axes = pair.layout.permutation;
      permuted[module] = permuted[module] || (axes.size() > 2 && !std::is_sorted(axes.begin(), axes.end()));
    }
    for (const std::string& module : order) {
      const std::string& target = *targets[module].begin();
      if (targets[module].size() != 1 || target.empty() || !closed(module, target)) continue;
      if (permuted[module])
        left_out.push_back(module);
      else
        out.push_back({module, target, ""});
    }
    return out;
  }

 private:
  // All parameters below the one lie below the other, and only they do; none of them in parts or tied.
  bool closed(const std::string& module, const std::string& target) const {
    for (const WeightPair& pair : audit_.pairs) {
      const bool here = inside(mine_[pair.reference].name, module),
                 there = inside(theirs_[pair.candidate].name, target);
      if (pair.tied && !here) continue;  // stored once for another module too
      if (here != there) return false;
      if (here && (pair.tied || pair.reference_part || pair.layout.split || pair.layout.slice)) return false;
    }
    return true;
  }

  const AuditResult& audit_;
  const std::vector<Parameter>&mine_, &theirs_;
};

}  // namespace

Mapping mapping_of(const AuditResult& audit, const WeightSide& reference, const WeightSide& candidate) {
  Mapping mapping;
  std::vector<Rule> weights;
  for (const WeightPair& pair : audit.pairs) {
    const Parameter& mine = reference.parameters()[pair.reference];
    std::string left = mine.name;
    if (pair.reference_part) left += part_text(*pair.reference_part, mine.shape);
    const Rule rule{left, candidate.parameters()[pair.candidate].name, steps_text(pair.layout), false};
    if (writable(mine.name) && writable(rule.right))
      weights.push_back(rule);
    else
      mapping.unwritable.push_back(rule.text());
  }
  mapping.weights = generalised(weights);
  mapping.modules = generalised(Modules(audit, reference.parameters(), candidate.parameters()).rules(mapping.left_out));
  return mapping;
}

std::string map_file(const Mapping& mapping, const std::string& reference, const std::string& candidate) {
  std::string text = fmt::format(
      "# Written by: parity-check weights '{}' '{}' --save-map FILE\n"
      "# For: parity-check compare REF CAND --map FILE. What the weights tell of the modules:\n",
      reference, candidate);
  for (const std::string& rule : mapping.modules) text += rule + "\n";
  for (const std::string& module : mapping.left_out)
    text += "# left to compare's own search, its axes may be permuted as its weight's are: " + module + "\n";
  text += "\n# The weights themselves (compare checks that they are there):\n";
  for (const std::string& rule : mapping.weights) text += rule + "\n";
  for (const std::string& pair : mapping.unwritable) text += "# not a rule, because of its name: " + pair + "\n";
  return text;
}

}  // namespace parity
