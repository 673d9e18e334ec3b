#include "calls/input_masks.hpp"

#include <ATen/ops/equal.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

namespace parity {
namespace {

// What a mask of (samples, tokens) says; nullopt: it is none, or nothing is padding.
std::optional<RaggedBatch> batch_of(const at::Tensor& mask) {
  RaggedBatch batch;
  batch.padded = mask.size(1);
  for (int64_t i = 0; i < mask.size(0); ++i) {
    const at::Tensor row = mask[i];
    const auto tokens = row.sum().item<int64_t>();
    const bool in_front = !row[0].item<bool>();
    if (tokens == 0 || !row.narrow(0, in_front ? batch.padded - tokens : 0, tokens).all().item<bool>())
      return std::nullopt;
    batch.tokens.push_back(tokens), batch.in_front.push_back(in_front);
  }
  batch.samples.resize(batch.tokens.size());
  std::iota(batch.samples.begin(), batch.samples.end(), 0);
  return std::ranges::min(batch.tokens) < batch.padded ? std::optional(batch) : std::nullopt;
}

// Is a recorded input a mask? `may_be`: of what is known before its value is read.
bool any_input(const RecordedSide& side, const std::function<bool(const Value&)>& may_be,
               const std::function<bool(const at::Tensor&)>& is_mask) {
  if (side.program == nullptr || side.dump == nullptr) return false;
  return std::ranges::any_of(side.program->leaves, [&](const Leaf& leaf) {
    return leaf.is_recorded_input() && may_be(leaf.value) && is_mask(stored_value(*side.dump, leaf.value));
  });
}

}  // namespace

std::vector<RaggedBatch> masked_batches(const RecordedSide& side) {
  std::vector<RaggedBatch> found;
  if (side.program == nullptr || side.dump == nullptr) return found;
  for (const Leaf& leaf : side.program->leaves)
    if (leaf.is_recorded_input() && leaf.value.shape.size() == 2 && leaf.value.elements() > 0) {
      const at::Tensor value = stored_value(*side.dump, leaf.value);
      const bool flags = value.eq(0).logical_or(value.eq(1)).all().item<bool>();  // token 0 is no padding
      if (auto batch = flags ? batch_of(value.ne(0)) : std::nullopt) found.push_back(std::move(*batch));
    }
  return found;
}

bool has_mask_of(const RecordedSide& side, const Padding& padding) {
  const auto has_axis = [&](const Value& value) { return std::ranges::count(value.shape, padding.padded) > 0; };
  return any_input(side, has_axis, [&](const at::Tensor& mask) {
    const Shape shape = mask.sizes().vec();
    const auto axis = std::ranges::find(shape, padding.padded) - shape.begin();
    const AxisPart part = part_along(static_cast<size_t>(axis), padding.padded, padding);
    const at::Tensor seen = axis_part(mask, part).ne(0).movedim(part.axis, 0).flatten(1).any(1);
    return seen.all().item<bool>() && axis_part(mask, rest_of(part)).eq(0).all().item<bool>();
  });
}

bool has_mask_of(const RecordedSide& side, const at::Tensor& tokens) {
  const auto is_as_large = [&](const Value& value) { return value.shape == tokens.sizes().vec(); };
  return any_input(side, is_as_large, [&](const at::Tensor& mask) { return at::equal(mask.ne(0), tokens); });
}

}  // namespace parity
