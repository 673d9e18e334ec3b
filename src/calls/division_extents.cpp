#include "calls/division_extents.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "calls/division_axes.hpp"
#include "calls/votes.hpp"
#include "trace/path.hpp"

namespace parity {

void find_extents(Division& found) {
  std::map<Extents, int> votes;
  for (const Chunks& chunks : found.chunks)
    if (!chunks.extents.empty()) votes.try_emplace(chunks.extents, 0);
  for (auto& [extents, count] : votes)
    for (const Chunks& chunks : found.chunks) count += !chunks.extents.empty() && rows_of(chunks.extents, extents) > 0;
  if (const auto most = most_of(votes)) found.extents = *most;
  int outermost = 0;
  for (const Chunks& chunks : found.chunks)
    if (chunks.extents == found.extents) outermost += chunks.axis == 0 ? 1 : -1;
  if (outermost != 0) found.outermost = outermost > 0;
}

std::optional<FirstExtents> extents_of_calls(const std::vector<Calls>& values, size_t times,
                                             const std::vector<size_t>& calls, bool anew) {
  std::map<FirstExtents, int> votes;
  for (const Calls& value : values) {
    const std::vector<Shape> shapes = value.times == times ? value.of(calls) : std::vector<Shape>();
    if (shapes.empty()) continue;
    auto axis = differing_axis(shapes, shapes.front());
    if (axis && anew)  // by how much they grow
      std::adjacent_difference(axis->extents.begin(), axis->extents.end(), axis->extents.begin());
    if (!axis && !anew && shapes == std::vector<Shape>(shapes.size(), shapes.front()))
      axis = DividedAxis{0, Extents(shapes.size(), 1)};
    if (axis && std::ranges::min(axis->extents) > 0) ++votes[{axis->extents, axis->axis == 0}];
  }
  return most_of(votes);
}

namespace {

// Of values whose tokens lie behind the batch: the extents before them; 0: there are none.
int64_t batch_of(const Division& found) {
  int64_t batch = 0;
  for (const Chunks& chunks : found.chunks)
    if (chunks.axis > 0 && chunks.extents == found.extents)
      batch = std::min(batch == 0 ? chunks.outer : batch, chunks.outer);
  return batch;
}

}  // namespace

void find_rows(Division& found) {
  const int64_t batch = batch_of(found);
  std::map<std::pair<std::string, std::vector<int>>, const Chunks*> modules;
  for (const Chunks& chunks : found.chunks)
    if (!chunks.own && !chunks.extents.empty()) modules.emplace(std::pair{chunks.path, chunks.calls}, &chunks);
  for (Chunks& chunks : found.chunks) {
    if (chunks.extents.empty()) continue;
    chunks.rows = rows_of(chunks.extents, found.extents);
    if (found.outermost) chunks.rows = std::min<int64_t>(chunks.rows, 1);
    if (batch > 0 && chunks.rows > batch && chunks.rows % batch == 0)
      chunks.rows = batch;  // a token's heads lie together
    if (chunks.own || chunks.axis > 0 || !is_op_path(chunks.path)) continue;
    const auto module = modules.find({module_of(chunks.path), chunks.calls});
    if (module == modules.end()) continue;
    const Chunks& result = *module->second;
    bool fits = true;
    for (size_t i = 0; i < chunks.extents.size(); ++i)
      fits = fits && chunks.extents[i] % (result.outer * result.extents[i]) == 0;
    if (fits) chunks.rows = result.outer;
  }
}

}  // namespace parity
