#include "calls/part_boundaries.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "calls/padding_tokens.hpp"
#include "pair/inserted_ops.hpp"

namespace parity {
namespace {

using json = nlohmann::json;

struct PlacedPart {
  AxisPart part;  // of the whole
  Value value;
};

// The ops that make of a value its parts, one behind the other, and of these and the rest the whole again.
class Parts {
 public:
  Parts(Program& program, OpInserter& inserter) : program_(program), inserter_(inserter) {}

  void take(size_t b, const PackedParts& packed) {
    const Value whole = program_.boundaries[b].value;
    if (inserter_.has_part_of(whole.id) || !whole.packed.parts.empty())
      return;  // another name of one, or of parts already
    op_ = inserter_.op_that_makes(whole.id);
    if (op_ < 0) return;
    ops_.clear();
    Value parts = taken(whole, packed);
    parts.key = whole.key, parts.packed = packed;
    const int before = static_cast<int>(ops_.size());
    const Value again = put_back(parts, whole, packed);
    inserter_.insert(whole, parts, again, before, std::move(ops_));
  }

 private:
  Value made(const std::string& name, json args, const Value& like, const Shape& shape) {
    const Value value = inserter_.fresh(like, shape);
    ops_.push_back(inserter_.made(name, std::move(args), value, op_));
    return value;
  }

  Value reshape(const Value& of, const Shape& shape) {
    if (of.shape == shape) return of;
    const Value copy = inserter_.fresh(of, of.shape);
    ops_.push_back(inserter_.contiguous_clone(of, copy, op_));
    return made("view", {argument(copy), shape}, of, shape);
  }

  Value slice(const Value& of, int64_t axis, int64_t begin, int64_t length) {
    Shape shape = of.shape;
    shape[axis] = length;
    return made("slice.Tensor", {argument(of), axis, begin, begin + length, 1}, of, shape);
  }

  Value cat(const std::vector<Value>& values, int64_t axis) {
    json arguments = json::array();
    std::vector<Shape> shapes;
    for (const Value& value : values) {
      arguments.push_back(argument(value));
      shapes.push_back(value.shape);
    }
    return made("cat", {arguments, axis}, values.front(), packed_shape(shapes, axis));
  }

  static bool in_groups(const Shape& shape, const AxisPart& part) { return shape[part.axis] != part.of; }

  // The axis as two: of groups, and of so many elements in each.
  static Shape grouped(Shape shape, const AxisPart& part, int64_t elements) {
    shape[part.axis] /= elements;
    shape.insert(shape.begin() + part.axis + 1, elements);
    return shape;
  }

  Value slice(const Value& of, const AxisPart& part) {
    if (!in_groups(of.shape, part)) return slice(of, part.axis, part.begin, part.length);
    const Value groups = reshape(of, grouped(of.shape, part, part.of));
    return reshape(slice(groups, part.axis + 1, part.begin, part.length), cut(of.shape, {part}));
  }

  // A copy, which the port's values take the place of.
  Value taken(const Value& whole, const PackedParts& packed) {
    std::vector<Value> values;
    for (const std::vector<AxisPart>& parts : packed.parts) {
      Value value = whole;
      for (const AxisPart& part : parts) value = slice(value, part);
      values.push_back(packed.axis < 0 ? reshape(value, {value.elements()}) : value);
    }
    return cat(values, std::max<int64_t>(packed.axis, 0));
  }

  // Into what was recorded, so that nothing else goes on from what was before; else into what is computed.
  Value put_back(const Value& taken, const Value& whole, const PackedParts& packed) {
    const Value source = whole.key.empty() ? whole : inserter_.recorded(whole);
    const int64_t axis = std::max<int64_t>(packed.axis, 0);
    std::vector<PlacedPart> placed;
    int64_t begin = 0;
    for (const std::vector<AxisPart>& parts : packed.parts) {
      const Shape shape = cut(whole.shape, parts);
      const int64_t length = packed.axis < 0 ? c10::multiply_integers(shape) : shape[axis];
      const Value part = packed.parts.size() == 1 ? taken : slice(taken, axis, begin, length);
      placed.push_back({parts.front(), restored(source, reshape(part, shape), parts, 0)});
      begin += length;
    }
    return around(source, std::move(placed));
  }

  // What parts[i] takes of the whole, with `value` as what it and those behind it take.
  Value restored(const Value& whole, const Value& value, const std::vector<AxisPart>& parts, size_t i) {
    if (i + 1 == parts.size()) return value;
    const Value outer = slice(whole, parts[i]);
    return around(outer, {{parts[i + 1], restored(outer, value, parts, i + 1)}});
  }

  // The whole with these along an axis, and between them what it has itself.
  Value around(const Value& whole, std::vector<PlacedPart> placed) {
    std::ranges::sort(placed, {}, [](const PlacedPart& p) { return p.part.begin; });
    const AxisPart first = placed.front().part;
    const bool groups = in_groups(whole.shape, first);
    std::vector<Value> values;
    int64_t end = 0;
    const auto add = [&](const Value& value, int64_t length) {
      values.push_back(groups ? reshape(value, grouped(value.shape, first, length)) : value);
      end += length;
    };
    const auto add_until = [&](int64_t begin) {
      if (begin > end) add(slice(whole, {first.axis, first.of, end, begin - end}), begin - end);
    };
    for (const auto& [part, value] : placed) {
      add_until(part.begin);
      add(value, part.length);
    }
    add_until(first.of);
    return reshape(cat(values, first.axis + groups), whole.shape);
  }

  Program& program_;
  OpInserter& inserter_;
  int op_ = -1;  // that makes the whole
  std::vector<Op> ops_;
};

}  // namespace

PartBoundaries go_on_from_parts(Program& program, const PartBoundaries& boundaries) {
  if (boundaries.empty()) return {};
  OpInserter inserter(program, "~parts");
  Parts parts(program, inserter);
  PartBoundaries changed;
  for (const auto& [b, packed] : boundaries) {
    parts.take(b, packed);
    if (inserter.has_part_of(program.boundaries[b].value.id)) changed.emplace(b, packed);
  }
  inserter.apply();
  return changed;
}

}  // namespace parity
