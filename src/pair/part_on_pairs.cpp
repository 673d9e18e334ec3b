#include "pair/part_on_pairs.hpp"

#include <algorithm>

namespace parity {

PartOnPairs part_on_pairs(const Program& program, const std::vector<bool>& marked, const std::vector<size_t>& targets,
                          const std::vector<double>& work_of_ops) {
  const auto since = program.ops_since(marked);
  const auto ancestors = program.marked_ancestors(marked);
  PartOnPairs found;
  std::set<size_t> ops;
  for (const size_t t : targets) {
    ops.insert(since[t].begin(), since[t].end());
    for (const size_t a : ancestors[t])
      if (!std::binary_search(targets.begin(), targets.end(), a)) found.needed.insert(a);
  }
  for (const size_t op : ops) found.work += work_of_ops[op];
  found.part = std::make_shared<ProgramPart>(ProgramPart{{ops.begin(), ops.end()}, targets, {}});
  return found;
}

}  // namespace parity
