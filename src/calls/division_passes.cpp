#include "calls/division_passes.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "calls/division_axes.hpp"
#include "calls/votes.hpp"

namespace parity {
namespace {

using Shapes = std::vector<Shape>;

// Call for call; empty: some call has none.
Shapes in_order(const Calls& calls) {
  Shapes shapes;
  if (calls.shapes.size() == calls.times)
    for (const auto& [call, shape] : calls.shapes) shapes.push_back(shape);
  return shapes;
}

// How many of the parts, from `begin` on, make the whole; 0: none do.
size_t parts_of(const Shape& whole, const Shapes& parts, size_t begin) {
  if (begin < parts.size() && parts[begin] == whole) return 1;
  for (size_t end = begin + 2; end <= parts.size(); ++end)
    if (axis_of_chunks({parts.begin() + static_cast<long>(begin), parts.begin() + static_cast<long>(end)}, whole))
      return end - begin;
  return 0;
}

ChunksOfPasses aligned(const Shapes& wholes, const Shapes& parts) {
  ChunksOfPasses counts;
  size_t taken = 0;
  for (const Shape& whole : wholes) {
    counts.push_back(parts_of(whole, parts, taken));
    if (counts.back() == 0) return {};
    taken += counts.back();
  }
  const bool uneven = std::ranges::adjacent_find(counts, std::not_equal_to{}) != counts.end();
  return taken == parts.size() && uneven ? counts : ChunksOfPasses();
}

}  // namespace

size_t usual_times(const std::vector<Calls>& paths, const std::vector<Calls>& others) {
  std::set<Shapes> alike;
  for (const Calls& calls : others) alike.insert(in_order(calls));
  std::map<size_t, int> votes;
  for (const Calls& calls : paths)
    if (const Shapes shapes = in_order(calls); shapes.empty() || !alike.contains(shapes)) ++votes[calls.times];
  return most_of(votes).value_or(0);
}

ChunksOfPasses chunks_of_passes(const std::vector<CallShapes>& paths, const std::vector<Calls>& reference,
                                bool of_port) {
  std::map<ChunksOfPasses, int> votes;
  const auto vote = [&](const Shapes& of_reference, const Shapes& port) {
    const ChunksOfPasses counts = of_port ? aligned(of_reference, port) : aligned(port, of_reference);
    if (!counts.empty()) ++votes[counts];
  };
  for (const CallShapes& path : paths)
    if (!path.own) vote(in_order(path.reference), in_order(path.port));
  if (votes.empty()) {
    std::set<Shapes> all;
    for (const Calls& calls : reference) all.insert(in_order(calls));
    for (const CallShapes& path : paths)
      if (path.own)
        for (const Shapes& shapes : all) vote(shapes, in_order(path.port));
  }
  return most_of(votes).value_or(ChunksOfPasses());
}

}  // namespace parity
