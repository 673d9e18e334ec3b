#include "ranks/shard_readings.hpp"

#include <algorithm>
#include <cstring>

#include "pair/limits.hpp"

namespace parity {
namespace {

constexpr int64_t kMostSections = 3;  // query, key and value in one product

bool equal_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor left = a.contiguous(), right = b.contiguous();
  return left.nbytes() == 0 || std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

double relative_distance(const ShardedTensor& tensor, const Placements& placements, const at::Tensor& whole) {
  const at::Tensor joined = join_parts(tensor.grid, placements, tensor.parts()).to(at::kDouble);
  const at::Tensor expected = whole.to(at::kDouble);
  const double norm = expected.norm().item<double>();
  return (joined - expected).norm().item<double>() / (norm > 0 ? norm : 1);
}

void enumerate(const ShardedTensor& tensor, const std::vector<int64_t>& whole, size_t axis, Placements& so_far,
               std::vector<Placements>& fitting) {
  if (axis == so_far.size()) {
    if (joined_shape(tensor.grid, so_far, tensor.shapes) == whole) fitting.push_back(so_far);
    return;
  }
  if (so_far[axis].kind != Placement::Kind::open) return enumerate(tensor, whole, axis + 1, so_far, fitting);
  so_far[axis] = {Placement::Kind::replicated};
  enumerate(tensor, whole, axis + 1, so_far, fitting);
  for (size_t d = 0; d < whole.size() && tensor.grid.axes[axis].second > 1; ++d) {
    so_far[axis] = {Placement::Kind::split, static_cast<int64_t>(d)};
    enumerate(tensor, whole, axis + 1, so_far, fitting);
  }
  so_far[axis] = {};
}

// Parts of a fused tensor agree with it section by section, and with nothing else: contents that agree only so.
void read_sections(ShardedTensor& tensor, const Placements& said, const at::Tensor& whole) {
  const double same = kPairLimits.content.same;
  for (size_t a = 0; a < said.size(); ++a) {
    Placement& placement = tensor.placements[a];
    if (said[a].kind != Placement::Kind::open || placement.kind != Placement::Kind::split) continue;
    if (relative_distance(tensor, tensor.placements, whole) <= same) return;
    for (placement.sections = 2; placement.sections <= kMostSections; ++placement.sections)
      if (joined_shape(tensor.grid, tensor.placements, tensor.shapes) &&
          relative_distance(tensor, tensor.placements, whole) <= same)
        return;
    placement.sections = 1;
  }
}

size_t votes_for(const ShardedTensor& tensor, const Placements& placements, const PlacementVotes& votes) {
  size_t sum = 0;
  for (size_t a = 0; a < placements.size(); ++a) {
    const auto found = votes.find({a, placements[a].kind, placements[a].axis});
    if (found != votes.end() && tensor.grid.axes[a].second > 1) sum += found->second;
  }
  return sum;
}

}  // namespace

void vote_placements(const ShardedTensor& tensor, PlacementVotes& votes) {
  for (size_t a = 0; a < tensor.placements.size(); ++a)
    if (tensor.grid.axes[a].second > 1) ++votes[{a, tensor.placements[a].kind, tensor.placements[a].axis}];
}

bool copies_agree(const ShardedTensor& tensor, const Placements& placements) {
  for (size_t a = 0; a < placements.size(); ++a) {
    if (placements[a].kind != Placement::Kind::replicated || tensor.grid.axes[a].second == 1) continue;
    for (const std::vector<size_t>& line : tensor.lines(a)) {
      const at::Tensor first = tensor.load[line.front()]();
      for (size_t i = 1; i < line.size(); ++i)
        if (!equal_bits(first, tensor.load[line[i]]())) return false;
    }
  }
  return true;
}

void begin_reading(ShardedTensor& tensor) {
  const auto dims = static_cast<int64_t>(tensor.shapes.front().size());
  for (size_t a = 0; a < tensor.placements.size(); ++a) {
    Placement& placement = tensor.placements[a];
    tensor.by_shape = tensor.by_shape || (placement.kind == Placement::Kind::open && tensor.grid.axes[a].second > 1);
    if (placement.axis < 0) placement.axis += dims;
  }
}

std::vector<Placements> placement_readings(const ShardedTensor& tensor, const WholeTensor* whole) {
  std::vector<Placements> fitting;
  Placements begin = tensor.placements;
  if (whole != nullptr) enumerate(tensor, whole->shape, 0, begin, fitting);
  if (fitting.empty()) {
    for (Placement& placement : begin)
      if (placement.kind == Placement::Kind::open) placement = {Placement::Kind::replicated};
    return {begin};
  }
  if (fitting.size() == 1) return fitting;
  std::vector<Placements> agreeing;
  for (const Placements& one : fitting)
    if (copies_agree(tensor, one)) agreeing.push_back(one);
  return agreeing.empty() ? fitting : agreeing;
}

bool settle_reading(ShardedTensor& tensor, const std::vector<Placements>& among, const WholeTensor* whole,
                    const PlacementVotes& votes) {
  const Placements said = tensor.placements;
  const bool stored = whole != nullptr && whole->value && tensor.load.size() > 1;
  const at::Tensor value = stored && tensor.by_shape ? whole->value() : at::Tensor();
  std::vector<std::pair<size_t, size_t>> order;  // votes, reading; most votes first
  for (size_t i = 0; i < among.size(); ++i) order.emplace_back(votes_for(tensor, among[i], votes), i);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  const auto equal = static_cast<size_t>(
      std::count_if(order.begin(), order.end(), [&](const auto& entry) { return entry.first == order.front().first; }));
  if (equal > 1 && !value.defined()) return false;
  size_t best = order.front().second;
  for (size_t i = 1; i < equal; ++i)
    if (relative_distance(tensor, among[order[i].second], value) < relative_distance(tensor, among[best], value))
      best = order[i].second;
  tensor.placements = among[best];
  if (value.defined() && at::isFloatingType(value.scalar_type()) && value.sizes() == at::IntArrayRef(whole->shape) &&
      joined_shape(tensor.grid, tensor.placements, tensor.shapes) == whole->shape)
    read_sections(tensor, said, value);
  return true;
}

}  // namespace parity
