#include "ranks/partial_sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ranks/join_shards.hpp"

namespace parity {
namespace {

using Followers = std::map<size_t, std::set<size_t>>;

// By boundary: the compared ones computed from it without another one between, and the next name of its value.
Followers followers_of(const Program& program, const std::map<size_t, size_t>& counterparts) {
  std::vector<bool> marked(program.boundaries.size());
  for (const auto& [boundary, tensor] : counterparts) marked[boundary] = true;
  const auto ancestors = program.marked_ancestors(marked);
  Followers followers;
  std::map<int64_t, size_t> named;  // value id -> the last boundary of that value
  for (const auto& [boundary, tensor] : counterparts) {
    for (const size_t a : ancestors[boundary])
      if (a < boundary) followers[a].insert(boundary);
    const int64_t value = program.boundaries[boundary].value.id;
    if (const auto before = named.find(value); before != named.end()) followers[before->second].insert(boundary);
    named[value] = boundary;
  }
  return followers;
}

// Axes of the mesh along which the copies of a tensor differ.
std::vector<size_t> differing_axes(const ShardedTensor& tensor) {
  std::vector<size_t> axes;
  for (size_t a = 0; a < tensor.placements.size(); ++a) {
    if (tensor.placements[a].kind != Placement::Kind::replicated) continue;
    const auto lines = tensor.lines(a);
    if (std::any_of(lines.begin(), lines.end(), [&](const std::vector<size_t>& line) {
          const at::Tensor first = tensor.load[line.front()]();
          return std::any_of(line.begin() + 1, line.end(),
                             [&](size_t place) { return !at::equal(first, tensor.load[place]()); });
        }))
      axes.push_back(a);
  }
  return axes;
}

// Is it alike on the ranks of these axes, or (`also_sums`, another name of the same value) a sum of what they have?
bool is_alike(const ShardedTensor* tensor, const std::vector<size_t>& axes, bool also_sums) {
  return tensor != nullptr && tensor->agree && std::all_of(axes.begin(), axes.end(), [&](size_t a) {
           return tensor->placements[a].kind == Placement::Kind::replicated ||
                  (also_sums && tensor->placements[a].kind == Placement::Kind::partial);
         });
}

bool may_be_summands(const ShardedTensor* tensor) {
  return tensor != nullptr && tensor->by_shape && !tensor->agree && at::isFloatingType(tensor->dtypes.front()) &&
         joined_shape(tensor->grid, tensor->placements, tensor->shapes);
}

// Is the sum nearer to the reference's value than a copy? Where that is not stored nothing speaks against it.
bool is_nearer(const ShardedTensor& sums, const ShardedTensor& copies, const WholeTensors& wholes,
               const CandidateTensor& tensor) {
  const auto whole = wholes.find({tensor.path, tensor.call});
  if (whole == wholes.end() || !whole->second.value) return true;
  const at::Tensor value = whole->second.value().to(at::kDouble);
  const auto off = [&](const ShardedTensor& read) {
    return (read.whole().to(at::kDouble) - value).norm().item<double>();
  };
  return off(sums) < off(copies);
}

}  // namespace

void read_partial_sums(const Program& reference, const std::map<size_t, size_t>& counterparts,
                       const WholeTensors& wholes, std::vector<CandidateTensor>& tensors,
                       std::vector<std::string>& notes) {
  const Followers followers = followers_of(reference, counterparts);
  std::vector<std::string> found;
  for (auto at = counterparts.rbegin(); at != counterparts.rend(); ++at) {
    CandidateTensor& tensor = tensors[at->second];
    const auto next = followers.find(at->first);
    if (next == followers.end() || !may_be_summands(tensor.shards.get())) continue;
    const std::vector<size_t> axes = differing_axes(*tensor.shards);
    const bool summed = !axes.empty() && std::all_of(next->second.begin(), next->second.end(), [&](size_t b) {
      const bool same_value = reference.boundaries[b].value.id == reference.boundaries[at->first].value.id;
      return is_alike(tensors[counterparts.at(b)].shards.get(), axes, same_value);
    });
    if (!summed) continue;
    ShardedTensor sums = *tensor.shards;
    for (const size_t a : axes) sums.placements[a].kind = Placement::Kind::partial;
    if (!is_nearer(sums, *tensor.shards, wholes, tensor)) continue;
    sums.agree = true;
    tensor = joined_tensor(tensor, std::move(sums));
    found.push_back(tensor.path);
  }
  if (!found.empty())
    notes.push_back(
        fmt::format("{} tensors ({} first) differ from rank to rank, and what is computed from them does not: they are "
                    "read as partial sums, and added up",
                    found.size(), found.back()));
}

}  // namespace parity
