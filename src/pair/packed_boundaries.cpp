#include <nlohmann/json.hpp>

#include "pair/inserted_ops.hpp"
#include "pair/ragged_values.hpp"

namespace parity {
namespace {

using json = nlohmann::json;

// The ops that make of a batch its samples, one behind the other, and of these and the padding the batch again.
class Samples {
 public:
  Samples(Program& program, OpInserter& inserter) : program_(program), inserter_(inserter) {}

  void take(size_t b, const PackedParts& packed) {
    const Value whole = program_.boundaries[b].value;
    if (inserter_.has_part_of(whole.id)) return;  // another name of one
    op_ = inserter_.op_that_makes(whole.id);
    if (op_ < 0) return;
    ops_.clear();
    Value samples = taken(whole, packed);
    samples.key = whole.key, samples.packed = packed;
    const int before = static_cast<int>(ops_.size());
    const Value batch = put_back(samples, whole, packed);
    inserter_.insert(whole, samples, batch, before, std::move(ops_));
  }

 private:
  Value made(const std::string& name, json args, const Value& like, Shape shape) {
    const Value value = inserter_.fresh(like, std::move(shape));
    ops_.push_back(inserter_.made(name, std::move(args), value, op_));
    return value;
  }

  Value slice(const Value& of, int64_t axis, int64_t begin, int64_t length) {
    Shape shape = of.shape;
    shape[axis] = length;
    return made("slice.Tensor", {argument(of), axis, begin, begin + length, 1}, of, shape);
  }

  Value reshape(const Value& of, const Shape& shape) {
    const Value copy = inserter_.fresh(of, of.shape);
    ops_.push_back(inserter_.contiguous_clone(of, copy, op_));
    return made("view", {argument(copy), shape}, of, shape);
  }

  Value taken(const Value& whole, const PackedParts& packed) {
    json values = json::array();
    for (const std::vector<AxisPart>& parts : packed.parts) {
      Value value = whole;
      for (const AxisPart& part : parts) value = slice(value, part.axis, part.begin, part.length);
      if (packed.axis < 0) value = reshape(value, {value.elements()});
      values.push_back(argument(value));
    }
    return made("cat", {values, std::max<int64_t>(packed.axis, 0)}, whole, packed_shape(whole.shape, packed));
  }

  // Into what was recorded, so that nothing else goes on from what was before; else into what is computed.
  Value put_back(const Value& samples, const Value& whole, const PackedParts& packed) {
    Value batch = whole.key.empty() ? whole : inserter_.recorded(whole, whole.shape, {});
    const int64_t axis = std::max<int64_t>(packed.axis, 0);
    int64_t begin = 0;
    for (const std::vector<AxisPart>& parts : packed.parts) {
      const Shape shape = cut(whole.shape, parts);
      const int64_t length = packed.axis < 0 ? c10::multiply_integers(shape) : shape[axis];
      Value sample = slice(samples, axis, begin, length);
      begin += length;
      if (packed.axis < 0) sample = reshape(sample, shape);
      batch = put_in(batch, sample, parts, 0);
    }
    return batch;
  }

  Value put_in(const Value& whole, const Value& sample, const std::vector<AxisPart>& parts, size_t i) {
    const AxisPart& part = parts[i];
    const Value inner =
        i + 1 == parts.size() ? sample : put_in(slice(whole, part.axis, part.begin, part.length), sample, parts, i + 1);
    return made("slice_scatter", {argument(whole), argument(inner), part.axis, part.begin, part.begin + part.length, 1},
                whole, whole.shape);
  }

  Program& program_;
  OpInserter& inserter_;
  int op_ = -1;  // that makes the batch
  std::vector<Op> ops_;
};

}  // namespace

PackedBoundaries go_on_from_samples(Program& program, const PackedBoundaries& packed) {
  if (packed.empty()) return {};
  OpInserter inserter(program, "~samples");
  Samples samples(program, inserter);
  PackedBoundaries changed;
  for (const auto& [b, parts] : packed) {
    samples.take(b, parts);
    if (inserter.has_part_of(program.boundaries[b].value.id)) changed.emplace(b, parts);
  }
  inserter.apply();
  return changed;
}

}  // namespace parity
