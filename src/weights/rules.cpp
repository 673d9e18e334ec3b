#include "weights/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/plain.hpp"
#include "jobs/map_rules.hpp"

namespace parity {
namespace {

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

  std::vector<MapRule> rules(std::vector<std::string>& left_out) const {
    std::vector<MapRule> out;
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
  std::vector<MapRule> weights;
  for (const WeightPair& pair : audit.pairs) {
    const Parameter& mine = reference.parameters()[pair.reference];
    std::string left = mine.name;
    if (pair.reference_part) left += part_text(*pair.reference_part, mine.shape);
    const MapRule rule{left, candidate.parameters()[pair.candidate].name, steps_text(pair.layout), false};
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
  for (const std::string& pair : mapping.unwritable) text += "# not a rule, because of its name: " + plain(pair) + "\n";
  return text;
}

}  // namespace parity
