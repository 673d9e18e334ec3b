#include <nlohmann/json.hpp>

#include "pair/inserted_ops.hpp"
#include "pair/padding.hpp"

namespace parity {
namespace {

using json = nlohmann::json;

// The ops that make of a boundary's value its tokens, and of these and the padding the whole again.
class Tokens {
 public:
  Tokens(Program& program, OpInserter& inserter) : program_(program), inserter_(inserter) {}

  void take(size_t b, const std::vector<AxisPart>& parts) {
    const Value whole = program_.boundaries[b].value;
    if (inserter_.has_part_of(whole.id)) return;  // another name of one
    op_ = inserter_.op_that_makes(whole.id);
    if (op_ < 0) return;
    ops_.clear();
    std::vector<Value> wholes{whole};  // and what each of the parts leaves of it
    for (const AxisPart& part : parts) wholes.push_back(taken(wholes.back(), part));
    Value tokens = wholes.back();
    tokens.key = whole.key, tokens.parts = parts;
    const int before = static_cast<int>(ops_.size());
    Value merged = tokens;
    for (size_t i = parts.size(); i-- > 0;) merged = put_back(merged, wholes, parts, i);
    inserter_.insert(whole, tokens, merged, before, std::move(ops_));
  }

 private:
  Value view(const Value& of, const Shape& shape) {
    const Value value = inserter_.fresh(of, shape);
    ops_.push_back(inserter_.made("view", {argument(of), shape}, value, op_));
    return value;
  }

  Value clone(const Value& of) {
    const Value value = inserter_.fresh(of, of.shape);
    ops_.push_back(inserter_.contiguous_clone(of, value, op_));
    return value;
  }

  // The axis as two: of groups, and of the elements of each.
  static Shape in_groups(const Value& whole, const AxisPart& part) {
    Shape shape = whole.shape;
    shape[part.axis] /= part.of;
    shape.insert(shape.begin() + part.axis + 1, part.of);
    return shape;
  }

  Value slice(const Value& of, int64_t axis, int64_t begin, int64_t end) {
    Shape shape = of.shape;
    shape[axis] = end - begin;
    const Value value = inserter_.fresh(of, shape);
    ops_.push_back(inserter_.made("slice.Tensor", {argument(of), axis, begin, end, 1}, value, op_));
    return value;
  }

  // A copy, which the port's values take the place of.
  Value taken(const Value& whole, const AxisPart& part) {
    const Value grouped = view(clone(whole), in_groups(whole, part));
    const Value apart = clone(slice(grouped, part.axis + 1, part.begin, part.begin + part.length));
    return clone(view(apart, cut(whole.shape, std::vector{part})));
  }

  // What is no token along the part's axis: as it was recorded, so that nothing else goes on from what was before; else
  // as it is computed.
  Value padding(const std::vector<Value>& wholes, const std::vector<AxisPart>& parts, size_t i) {
    const AxisPart rest = rest_of(parts[i]);
    const Value& whole = wholes.front();
    if (whole.key.empty()) return taken(wholes[i], rest);
    std::vector<AxisPart> all(parts.begin(), parts.begin() + static_cast<ptrdiff_t>(i));
    all.push_back(rest);
    return inserter_.recorded(whole, cut(wholes[i].shape, std::vector{rest}), all);
  }

  Value put_back(const Value& tokens, const std::vector<Value>& wholes, const std::vector<AxisPart>& parts, size_t i) {
    const AxisPart& part = parts[i];
    const Value rest = padding(wholes, parts, i);
    Shape shape = in_groups(wholes[i], part), of_rest = shape;
    shape[part.axis + 1] = part.length, of_rest[part.axis + 1] = part.of - part.length;
    std::vector<Value> values{view(tokens, shape), view(clone(rest), of_rest)};
    if (part.begin > 0) std::swap(values[0], values[1]);
    const Value all = inserter_.fresh(wholes[i], in_groups(wholes[i], part));
    const json both = json::array({argument(values[0]), argument(values[1])});
    ops_.push_back(inserter_.made("cat", {both, part.axis + 1}, all, op_));
    return view(all, wholes[i].shape);
  }

  Program& program_;
  OpInserter& inserter_;
  int op_ = -1;  // that makes the value
  std::vector<Op> ops_;
};

}  // namespace

std::set<size_t> go_on_from_tokens(Program& program, const PaddedBoundaries& padded) {
  if (padded.empty()) return {};
  OpInserter inserter(program, "~without padding");
  Tokens tokens(program, inserter);
  std::set<size_t> changed;
  for (const auto& [b, parts] : padded) {
    tokens.take(b, parts);
    if (inserter.has_part_of(program.boundaries[b].value.id)) changed.insert(b);
  }
  inserter.apply();
  return changed;
}

}  // namespace parity
