#include "calls/packed_batch.hpp"

#include <algorithm>

#include "calls/input_masks.hpp"

namespace parity {
namespace {

// The same samples with others beside their tokens: a text's pooled value, an image's.
RaggedBatch longer(RaggedBatch batch, int64_t padded) {
  for (int64_t& tokens : batch.tokens) tokens += padded - batch.padded;
  batch.padded = padded;
  return batch;
}

// Samples that are all as long and have no padding: an image's, beside a text's.
PackedParts whole_samples(const RaggedBatch& batch, const Shape& whole) {
  if (whole.size() < 3 || whole[0] != batch.size()) return {};
  PackedParts packed{{}, 1};
  for (const size_t sample : batch.samples) packed.parts.push_back({{0, whole[0], static_cast<int64_t>(sample), 1}});
  return packed;
}

// The shape of a batch's samples, one behind the other, as far as the batch's alone tells; empty: it has none.
Shape shape_behind(const RaggedBatch& batch, const Shape& whole) {
  const PackedParts places = places_by_shape(batch, whole);
  return places.parts.empty() ? Shape() : packed_shape(whole, places);
}

bool explains_names(const RaggedBatch& batch, const std::vector<CallShapes>& paths) {
  int all = 0, fitting = 0;
  for (const CallShapes& path : paths) {
    if (path.own) continue;
    const Calls &padded = batch.batch(path), &packed = batch.single(path);
    for (const auto& [call, whole] : padded.shapes) {
      const auto other = packed.shapes.find(call);
      if (other == packed.shapes.end() || other->second == whole) continue;
      ++all, fitting += !places_behind(batch, whole, other->second).parts.empty();
    }
  }
  return 2 * fitting > all;
}

// The same of names of the port's own: most shapes that the reference has not.
bool explains_own_names(const RaggedBatch& batch, const Program& reference, const std::vector<CallShapes>& paths) {
  const KnownShapes known(reference);
  KnownShapes packed;
  for (const Boundary& b : reference.boundaries)
    if (const Shape shape = shape_behind(batch, b.value.shape); !shape.empty()) packed.add(shape);
  int all = 0, fitting = 0;
  for (const CallShapes& path : paths)
    for (const auto& [call, shape] : path.port.shapes) {
      if (!path.own || known.has_extents(shape)) continue;
      ++all, fitting += batch.of_port ? known.has_extents(shape_behind(batch, shape)) : packed.has_extents(shape);
    }
  return 2 * fitting > all;
}

}  // namespace

PackedParts places_behind(const RaggedBatch& batch, const Shape& whole, const Shape& other, bool last) {
  KnownShapes wanted;
  wanted.add(other);
  const auto is_wanted = [&](const PackedParts& places) {
    return !places.parts.empty() && wanted.has_extents(packed_shape(whole, places));
  };
  std::vector<PackedParts> possible{places_by_shape(batch, whole, last)};
  if (!last) {
    for (size_t axis = 1; axis < whole.size(); ++axis)
      if (whole[axis] > batch.padded) possible.push_back(places_by_shape(longer(batch, whole[axis]), whole));
    possible.push_back(whole_samples(batch, whole));
  }
  const auto found = std::ranges::find_if(possible, is_wanted);
  return found == possible.end() ? PackedParts() : *found;
}

PackedParts places_behind(const RaggedBatch& batch, const Shape& whole, const Shape& other) {
  PackedParts all = places_behind(batch, whole, other, false);
  return all.parts.empty() ? places_behind(batch, whole, other, true) : all;
}

std::optional<RaggedBatch> find_packed_batch(const RecordedSide& reference, const RecordedSide& port,
                                             const std::vector<CallShapes>& paths) {
  const bool own = std::ranges::all_of(paths, [](const CallShapes& path) { return path.own; });
  for (const bool of_port : {false, true})
    for (RaggedBatch& batch : masked_batches(of_port ? port : reference)) {
      batch.of_port = of_port;
      if (batch.size() > 1 &&
          (own ? explains_own_names(batch, *reference.program, paths) : explains_names(batch, paths)))
        return batch;
    }
  return std::nullopt;
}

}  // namespace parity
