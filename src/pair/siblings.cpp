#include "pair/siblings.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>

#include "pair/limits.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

constexpr size_t kMost = 3;  // q, k and v

bool inside(const Boundary& one, const Boundary& module) {
  const std::string path = module_of(module.path);
  return one.call == module.call && one.path.size() > path.size() && one.path.starts_with(path) &&
         (one.path[path.size()] == '.' || one.path[path.size()] == '/');
}

// Values that the call of a module takes: what its result is computed from and it did not compute itself.
std::set<int64_t> sources_of(size_t module, const Program& program, const std::vector<std::vector<size_t>>& direct) {
  std::set<int64_t> values;
  std::vector<size_t> left{module};
  std::set<size_t> seen{module};
  while (!left.empty()) {
    const size_t at = left.back();
    left.pop_back();
    for (const size_t a : direct[at])
      if (!inside(program.boundaries[a], program.boundaries[module]))
        values.insert(program.boundaries[a].value.id);
      else if (seen.insert(a).second)
        left.push_back(a);
  }
  return values;
}

// From the first's fit of this number: the first fit of each, in this order, each behind the one before.
std::optional<std::vector<Placed>> next_to(const std::vector<std::vector<Placed>>& fits,
                                           const std::vector<size_t>& order, size_t first) {
  if (first >= fits[order[0]].size()) return std::nullopt;
  std::vector<Placed> placed{fits[order[0]][first]};
  for (size_t i = 1; i < order.size(); ++i) {
    const auto next = std::ranges::upper_bound(fits[order[i]], placed.back().candidate, {}, &Placed::candidate);
    if (next == fits[order[i]].end()) return std::nullopt;
    placed.push_back(*next);
  }
  std::ranges::sort(placed, {}, &Placed::boundary);
  return placed;
}

}  // namespace

std::vector<std::vector<size_t>> siblings_among(const Program& program, const std::vector<std::vector<size_t>>& direct,
                                                const std::vector<size_t>& boundaries) {
  std::map<std::set<int64_t>, std::vector<size_t>> by_source;
  for (const size_t b : boundaries)
    if (!is_op_path(program.boundaries[b].path))
      if (auto values = sources_of(b, program, direct); !values.empty()) by_source[std::move(values)].push_back(b);
  std::vector<std::vector<size_t>> groups;
  for (auto& [values, group] : by_source)
    if (group.size() > 1 && group.size() <= kMost) groups.push_back(std::move(group));
  std::ranges::sort(groups);
  return groups;
}

std::vector<std::vector<Placed>> in_a_row(const std::vector<std::vector<Placed>>& fits) {
  std::vector<std::vector<Placed>> rows;
  std::vector<size_t> order(fits.size());
  const auto most = static_cast<size_t>(kPairLimits.trial.candidates);
  for (size_t first = 0; first < most && rows.size() < most; ++first) {
    std::iota(order.begin(), order.end(), 0);
    do
      if (auto row = next_to(fits, order, first)) rows.push_back(std::move(*row));
    while (std::next_permutation(order.begin(), order.end()));
  }
  return rows;
}

}  // namespace parity
