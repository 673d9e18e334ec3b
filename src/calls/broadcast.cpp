#include "calls/broadcast.hpp"

#include <ATen/ops/equal.h>

#include <algorithm>
#include <map>

#include "calls/call_shapes.hpp"

namespace parity {
namespace {

// The shape with outermost axes of 1 so that it has as many; empty: it has more.
Shape padded(const Shape& shape, size_t axes) {
  if (shape.size() > axes) return {};
  Shape wide(axes - shape.size(), 1);
  wide.insert(wide.end(), shape.begin(), shape.end());
  return wide;
}

// The first of the slices along each axis where `from` is longer than `to`.
at::Tensor first_slice(const at::Tensor& from, const Shape& to) {
  at::Tensor one = from;
  for (size_t axis = 0; axis < to.size(); ++axis)
    if (one.size(static_cast<int64_t>(axis)) != to[axis]) one = one.narrow(static_cast<int64_t>(axis), 0, 1);
  return one;
}

bool repeats_it(const at::Tensor& from, const Shape& to) {
  return at::equal(first_slice(from, to).expand(from.sizes()), from);
}

// Are they alike but for axes along which one of them has 1?
bool may_broadcast(const Shape& a, const Shape& b) {
  for (size_t axis = 0; axis < b.size(); ++axis)
    if (a[axis] != b[axis] && a[axis] != 1 && b[axis] != 1) return false;
  return true;
}

void give_shape(CandidateTensor& tensor, const Dump& dump, const Value& value) {
  if (tensor.shape == value.shape) return;
  const Shape mine = padded(tensor.shape, value.shape.size());
  if (mine.empty() || !may_broadcast(mine, value.shape)) return;
  Shape common = mine;  // 1 wherever one side has 1
  for (size_t axis = 0; axis < common.size(); ++axis) common[axis] = std::min(mine[axis], value.shape[axis]);
  if (common != value.shape && (value.key.empty() || !repeats_it(stored_value(dump, value), common))) return;
  if (common != mine && !repeats_it(tensor.load().reshape(mine), common)) return;
  tensor.load = [load = tensor.load, mine, common, shape = value.shape] {
    return first_slice(load().reshape(mine), common).expand(shape);
  };
  tensor.shape = value.shape;
}

}  // namespace

void broadcast(const Program& reference, const Dump& dump, std::vector<CandidateTensor>& tensors, const NameMap* map) {
  std::map<std::pair<std::string, int>, CandidateTensor*> by_name;
  for (CandidateTensor& tensor : tensors) by_name.emplace(std::pair{tensor.path, tensor.call}, &tensor);
  for (const auto& [name, b] : reference.index) {
    const Boundary& boundary = reference.boundaries[b];
    const auto target = map != nullptr ? map->find(boundary.path, boundary.call) : std::nullopt;
    if (!boundary.comparable || (target && !target->layout.as_it_is())) continue;
    const auto tensor = by_name.find(counterpart_of(target, boundary.path, boundary.call));
    if (tensor != by_name.end()) give_shape(*tensor->second, dump, boundary.value);
  }
}

}  // namespace parity
