#include "calls/padding_counts.hpp"

#include <algorithm>

#include "trace/flow.hpp"
#include "trace/path.hpp"

namespace parity {

std::set<size_t> counts_over_padding(const Program& program, const std::set<size_t>& of_tokens,
                                     const std::set<size_t>& left_out) {
  const Flow flow = analyse_flow(program);
  const auto memory = [&](int64_t id) { return flow.root.contains(id) ? flow.root.at(id) : id; };
  std::set<int64_t> padded, gone;  // values
  std::set<size_t> found;
  for (size_t b = 0; b < program.boundaries.size(); ++b) {
    const Boundary& boundary = program.boundaries[b];
    const auto reads_of = [&](const std::set<int64_t>& values) {
      const auto& reads = flow.ops[static_cast<size_t>(boundary.position) - 1].reads;
      return std::ranges::any_of(reads, [&](int64_t id) { return values.contains(memory(id)); });
    };
    const bool of_integers = at::isIntegralType(boundary.value.dtype, true) && is_op_path(boundary.path);
    if (of_integers && boundary.position > 0 && (reads_of(gone) || (!of_tokens.contains(b) && reads_of(padded))))
      found.insert(b);
    if (found.contains(b) || left_out.contains(b))
      gone.insert(memory(boundary.value.id));
    else if (of_tokens.contains(b))
      padded.insert(memory(boundary.value.id));
  }
  return found;
}

PartBoundaries go_on_from_tokens(Program& program, PartBoundaries boundaries, const std::set<size_t>& of_tokens,
                                 std::set<size_t>& left_out) {
  const std::set<size_t> counts = counts_over_padding(program, of_tokens, left_out);
  left_out.insert(counts.begin(), counts.end());
  std::erase_if(boundaries, [&](const auto& boundary) { return counts.contains(boundary.first); });
  PartBoundaries changed = go_on_from_parts(program, boundaries);
  for (const auto& [b, parts] : boundaries)
    if (!changed.contains(b)) left_out.insert(b);
  return changed;
}

}  // namespace parity
