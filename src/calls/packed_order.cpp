#include <algorithm>
#include <numeric>

#include "calls/limits.hpp"
#include "calls/packed_batch.hpp"
#include "measure/measure.hpp"
#include "pair/limits.hpp"
#include "pair/readings.hpp"

namespace parity {
namespace {

// The value of the batch's side and that of the other.
struct BothValues {
  at::Tensor whole, packed;
};

// Sample after sample that of the batch which the next values are, its own before others: prompts may be equal.
class OrderOfSamples {
 public:
  OrderOfSamples(const RaggedBatch& batch, const BothValues& values) : batch_(batch), values_(values) {}

  std::optional<RaggedBatch> find() {
    std::vector<size_t> left(batch_.tokens.size());
    std::iota(left.begin(), left.end(), 0);
    RaggedBatch found = batch_;
    int64_t begin = 0;
    for (size_t i = 0; i < batch_.tokens.size(); ++i) {
      const auto sample = std::ranges::find_if(left, [&](size_t s) { return is_next(s, begin); });
      if (sample == left.end()) return std::nullopt;
      found.tokens[i] = batch_.tokens[*sample], found.in_front[i] = batch_.in_front[*sample];
      found.samples[i] = *sample;
      begin += length_of(*sample);
      left.erase(sample);
    }
    return found;
  }

 private:
  int64_t length_of(size_t s) const { return place(s).sizes()[places_.axis]; }

  at::Tensor place(size_t s) const { return axis_parts(values_.whole, places_.parts[s]); }

  bool is_next(size_t s, int64_t begin) const {
    const at::Tensor part = place(s);
    if (begin + part.size(places_.axis) > values_.packed.size(places_.axis)) return false;
    const at::Tensor next = values_.packed.narrow(places_.axis, begin, part.size(places_.axis));
    return measure_sums(part, next).rel_l2.value_or(1) < kPairLimits.content.same;
  }

  const RaggedBatch& batch_;
  const BothValues& values_;
  const PackedParts places_ = places_behind(batch_, values_.whole.sizes().vec(), values_.packed.sizes().vec());
};

// nullopt: one is not the other's samples, one behind the other.
std::optional<BothValues> both_values(const RaggedBatch& batch, const Dump& dump, const Value& mine,
                                      const CandidateTensor& theirs) {
  const Shape &whole = batch.of_port ? theirs.shape : mine.shape, &other = batch.of_port ? mine.shape : theirs.shape;
  const PackedParts places = whole == other ? PackedParts() : places_behind(batch, whole, other);
  if (places.parts.empty() || places.axis < 0) return std::nullopt;
  const Shape packed = packed_shape(whole, places);
  if (longer_axes(packed) != longer_axes(other)) return std::nullopt;
  const at::Tensor value = stored_value(dump, mine);
  return batch.of_port ? BothValues{theirs.load(), value.reshape(packed)}
                       : BothValues{value, theirs.load().reshape(packed)};
}

}  // namespace

RaggedBatch in_order_of_values(const RaggedBatch& batch, const RecordedSide& reference,
                               const std::vector<CandidateTensor>& tensors, const std::vector<CallShapes>& paths) {
  double boundaries = 0;
  for (const Boundary& b : reference.program->boundaries) {
    if (b.call != 0 || !b.comparable || b.value.key.empty() || !at::isFloatingType(b.value.dtype)) continue;
    double looked_at = 0;
    for (const CallShapes& path : paths) {
      const auto c = path.tensors.find(0);
      if ((!path.own && path.name != b.path) || c == path.tensors.end()) continue;
      const auto values = both_values(batch, *reference.dump, b.value, tensors[c->second]);
      if (!values) continue;
      if (auto found = OrderOfSamples(batch, *values).find()) return *found;
      if (++looked_at == kCallLimits.padded) break;
    }
    boundaries += looked_at > 0;
    if (boundaries == kCallLimits.padded) break;
  }
  return batch;
}

}  // namespace parity
