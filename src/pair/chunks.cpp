#include "pair/chunks.hpp"

#include <ATen/ops/cat.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "pair/readings.hpp"

namespace parity {
namespace {

constexpr std::string_view kPlaces = "arange";  // of tokens or samples: every call's begin anew

struct Chunks {
  std::vector<size_t> calls;  // indices into the candidate's tensors
  int64_t axis = 0;
  std::vector<int64_t> extents;  // along it
  std::vector<int64_t> shape;    // of the whole
  int64_t rows = 1;              // of the batch, where batch and tokens are one axis
};

std::optional<Chunks> chunks_of(const std::vector<CandidateTensor>& tensors, const std::vector<size_t>& calls,
                                const std::vector<int64_t>& whole) {
  std::set<size_t> different;
  std::vector<int64_t> sums(whole.size());
  for (const size_t c : calls) {
    const auto& shape = tensors[c].shape;
    if (shape.size() != whole.size() || tensors[c].dtype != tensors[calls.front()].dtype) return std::nullopt;
    for (size_t a = 0; a < whole.size(); ++a) {
      sums[a] += shape[a];
      if (shape[a] != whole[a]) different.insert(a);
    }
  }
  if (different.size() != 1 || sums[*different.begin()] != whole[*different.begin()]) return std::nullopt;
  Chunks chunks{calls, static_cast<int64_t>(*different.begin()), {}, whole};
  for (const size_t c : calls) chunks.extents.push_back(tensors[c].shape[*different.begin()]);
  return chunks;
}

struct Division {
  std::map<size_t, Chunks> chunks;  // by the first call
  std::set<size_t> otherwise;       // calls of what is in no such chunks: scores over a growing cache

  struct OfSome {
    std::vector<size_t> calls;
    std::vector<int64_t> whole;  // the reference's shape
  };
  std::vector<OfSome> of_some;  // ops that not every chunk runs: a mask that is all ones, a copy of one sample

  void leave_out(const std::vector<size_t>& calls) { otherwise.insert(calls.begin(), calls.end()); }
};

// A path's values in the reference, call by call, and the port's calls, which come chunk by chunk.
void divide_path(Division& found, const std::vector<CandidateTensor>& tensors,
                 const std::vector<const Boundary*>& reference, const std::vector<size_t>& calls) {
  std::vector<Chunks> of_calls;
  for (size_t i = 0; i < reference.size(); ++i) {
    std::vector<size_t> of_call;
    for (size_t c = i; c < calls.size(); c += reference.size()) of_call.push_back(calls[c]);
    if (auto chunks = chunks_of(tensors, of_call, reference[i]->value.shape)) of_calls.push_back(std::move(*chunks));
  }
  if (of_calls.size() == reference.size() && reference.front()->kind != kPlaces)
    for (Chunks& chunks : of_calls) found.chunks.emplace(chunks.calls.front(), std::move(chunks));
  else if (tensors[calls.front()].shape != reference.front()->value.shape)
    found.leave_out(calls);
}

std::vector<int64_t> sorted_extents(const std::vector<int64_t>& shape) {
  std::vector<int64_t> extents = longer_axes(shape);
  std::sort(extents.begin(), extents.end());
  return extents;
}

// Of a path that is the port's own: no call has the extents of a value of the reference, whatever their order, and all
// joined along an axis, not the last, have.
std::optional<Chunks> nameless_chunks(const std::vector<CandidateTensor>& tensors, const std::vector<size_t>& calls,
                                      const std::set<std::vector<int64_t>>& known) {
  for (const size_t c : calls)
    if (known.contains(sorted_extents(tensors[c].shape))) return std::nullopt;
  const std::vector<int64_t>& first = tensors[calls.front()].shape;
  for (size_t axis = first.empty() ? 0 : first.size() - 1; axis-- > 0;) {
    std::vector<int64_t> whole = first;
    whole[axis] = 0;
    for (const size_t c : calls) whole[axis] += axis < tensors[c].shape.size() ? tensors[c].shape[axis] : 0;
    if (!known.contains(sorted_extents(whole))) continue;
    if (auto chunks = chunks_of(tensors, calls, whole)) return chunks;
  }
  return std::nullopt;
}

Division divide(const Program& reference, const std::vector<CandidateTensor>& tensors, const NameMap* map) {
  std::map<std::string, std::vector<size_t>> calls;
  for (size_t c = 0; c < tensors.size(); ++c) calls[tensors[c].path].push_back(c);
  Division found;
  std::map<std::string, std::vector<const Boundary*>> values;
  for (const Boundary& b : reference.boundaries)
    if (b.comparable && values[b.path].size() == static_cast<size_t>(b.call)) values[b.path].push_back(&b);
  for (const auto& [path, of_path] : values) {
    const auto target = map != nullptr ? map->find(path) : std::nullopt;
    if (of_path.empty() || (target && !target->layout.text().empty())) continue;
    const auto there = calls.find(target ? target->candidate : path);
    if (there == calls.end()) continue;
    const size_t times = there->second.size(), once = of_path.size();
    if (times > once && times % once == 0)
      divide_path(found, tensors, of_path, there->second);
    else if (tensors[there->second.front()].of_op)
      found.of_some.push_back({there->second, of_path.front()->value.shape});
    calls.erase(there);
  }
  std::set<std::vector<int64_t>> known;
  for (const Boundary& b : reference.boundaries)
    if (b.comparable) known.insert(sorted_extents(b.value.shape));
  for (const auto& [path, of_path] : calls)
    if (of_path.size() > 1 && !tensors[of_path.front()].of_op && !reference.find(path, 0))
      if (auto chunks = nameless_chunks(tensors, of_path, known))
        found.chunks.emplace(of_path.front(), std::move(*chunks));
  return found;
}

// A product on (batch x tokens, dim) divides its rows batch by batch: `rows` times the usual extents; 0: otherwise.
int64_t rows_of(const std::vector<int64_t>& extents, const std::vector<int64_t>& usual) {
  if (extents.size() != usual.size() || extents.front() % usual.front() != 0) return 0;
  const int64_t rows = extents.front() / usual.front();
  for (size_t i = 0; i < usual.size(); ++i)
    if (extents[i] != rows * usual[i]) return 0;
  return rows;
}

// What explains most divisions, as they are or times the rows of a batch.
std::vector<int64_t> usual_extents(const std::map<size_t, Chunks>& divided) {
  std::map<std::vector<int64_t>, int> votes;
  for (const auto& [first, chunks] : divided) votes.try_emplace(chunks.extents, 0);
  for (auto& [extents, count] : votes)
    for (const auto& [first, chunks] : divided) count += rows_of(chunks.extents, extents) > 0;
  return std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

// Most of what is divided so has it as its outermost axis: samples of a batch, or tokens before it. What flattens it
// with another then lies chunk behind chunk, too.
bool outermost(const std::map<size_t, Chunks>& divided, const std::vector<int64_t>& usual) {
  int votes = 0;
  for (const auto& [first, chunks] : divided)
    if (chunks.extents == usual) votes += chunks.axis == 0 ? 1 : -1;
  return votes > 0;
}

bool is_a_chunk(const std::vector<int64_t>& shape, const std::vector<int64_t>& whole,
                const std::vector<int64_t>& usual) {
  const int64_t all = std::accumulate(usual.begin(), usual.end(), int64_t{0});
  if (shape.size() != whole.size()) return false;
  const auto there = std::mismatch(shape.begin(), shape.end(), whole.begin());
  if (there.first == shape.end() || !std::equal(there.first + 1, shape.end(), there.second + 1)) return false;
  const int64_t part = *there.first, of = *there.second;
  return of % all == 0 &&
         std::any_of(usual.begin(), usual.end(), [&](int64_t extent) { return part == of / all * extent; });
}

CandidateTensor joined(const std::vector<CandidateTensor>& tensors, const Chunks& chunks) {
  CandidateTensor whole = tensors[chunks.calls.front()];
  whole.shape = chunks.shape;
  std::vector<std::function<at::Tensor()>> parts;
  for (const size_t c : chunks.calls) parts.push_back(tensors[c].load);
  whole.load = [parts, axis = chunks.axis, rows = chunks.rows] {
    std::vector<at::Tensor> loaded;
    for (const auto& load : parts) loaded.push_back(load().unflatten(axis, {rows, -1}));
    return at::cat(loaded, axis + 1).flatten(axis, axis + 1);
  };
  return whole;
}

}  // namespace

std::vector<CandidateTensor> join_chunks(const Program& reference, std::vector<CandidateTensor> tensors,
                                         const NameMap* map, std::vector<std::string>& notes) {
  Division found = divide(reference, tensors, map);
  if (found.chunks.empty()) return tensors;
  const std::vector<int64_t> usual = usual_extents(found.chunks);
  const bool whole_chunks = outermost(found.chunks, usual);
  for (const auto& [calls, shape] : found.of_some)
    if (is_a_chunk(tensors[calls.front()].shape, shape, usual)) found.leave_out(calls);
  std::set<size_t> gone = found.otherwise;  // and calls that are part of an earlier one's tensor
  for (auto& [first, chunks] : found.chunks) {
    chunks.rows = rows_of(chunks.extents, usual);
    if (whole_chunks) chunks.rows = std::min<int64_t>(chunks.rows, 1);
    gone.insert(chunks.calls.begin() + (chunks.rows > 0), chunks.calls.end());
  }
  const size_t left_out =
      found.otherwise.size() + std::erase_if(found.chunks, [](const auto& entry) { return entry.second.rows == 0; });
  std::vector<CandidateTensor> whole;
  for (size_t c = 0; c < tensors.size(); ++c) {
    if (gone.contains(c)) continue;
    const auto chunks = found.chunks.find(c);
    whole.push_back(chunks == found.chunks.end() ? tensors[c] : joined(tensors, chunks->second));
  }
  notes.push_back(
      fmt::format("the port ran in {} chunks ({}) what the reference ran at once: {} tensors are joined, "
                  "{} that are divided otherwise (a cache) are not compared",
                  usual.size(), fmt::join(usual, " + "), found.chunks.size(), left_out));
  return whole;
}

}  // namespace parity
