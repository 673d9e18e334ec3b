#include "ranks/join_shards.hpp"

#include <fmt/format.h>

#include <set>

#include "core/error.hpp"
#include "ranks/shard_readings.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

using Kind = Placement::Kind;
using Name = std::pair<std::string, int>;

struct Count {
  size_t split = 0, copies = 0, sums = 0, by_shape = 0, left_out = 0;
};

class Joiner {
 public:
  Joiner(const std::vector<RankRecording>& ranks, const WholeTensors& wholes)
      : ranks_(ranks), wholes_(wholes), mesh_(ranks.front().shard.mesh) {}

  std::vector<CandidateTensor> join(std::vector<std::string>& notes) {
    const std::vector<Name> order = names();
    std::vector<Begun> begun(order.size());
    for (const bool sure : {true, false})  // what one reading fits alone votes for the others
      for (size_t i = 0; i < order.size(); ++i) {
        if (sure) begun[i] = begin(order[i]);
        Begun& one = begun[i];
        if (!one.there || (one.among.size() == 1) != sure) continue;
        one.there = settle_reading(one.tensor, one.among, one.whole, votes_);
        if (one.there) vote_placements(one.tensor, votes_);
      }
    sections_of_others(order, begun);
    std::vector<CandidateTensor> out;
    for (size_t i = 0; i < order.size(); ++i)
      if (auto tensor = finished(order[i], begun[i])) out.push_back(std::move(*tensor));
    notes.push_back(fmt::format(
        "{} ranks ({}) joined: {} tensors, {} of them split, {} sums of partial sums, {} compared as copies; the "
        "placements of {} were read off their shapes{}",
        mesh_.ranks(), mesh_.text(), out.size(), count_.split, count_.sums, count_.copies, count_.by_shape,
        count_.left_out == 0
            ? ""
            : fmt::format(
                  "; {} that differ from rank to rank and of which nothing says how they lie in the whole are left out",
                  count_.left_out)));
    return out;
  }

 private:
  // The first rank's order; what only later ones have follows.
  std::vector<Name> names() {
    std::vector<Name> order;
    for (size_t r = 0; r < ranks_.size(); ++r)
      for (const CandidateTensor& tensor : ranks_[r].tensors) {
        const Name name(tensor.path, tensor.call);
        std::vector<const CandidateTensor*>& parts = parts_[name];
        if (parts.empty()) parts.resize(ranks_.size()), order.push_back(name);
        if (parts[r] == nullptr) parts[r] = &tensor;
      }
    return order;
  }

  struct Begun {
    bool there = false;
    ShardedTensor tensor;
    std::vector<Placements> among;
    const WholeTensor* whole = nullptr;
  };

  Begun begin(const Name& name) {
    Begun one;
    one.there = take_parts(parts_[name], one.tensor);
    if (!one.there) return one;
    one.tensor.placements = said(name, one.tensor);
    begin_reading(one.tensor);
    if (const auto whole = wholes_.find(name); whole != wholes_.end()) one.whole = &whole->second;
    one.among = placement_readings(one.tensor, one.whole);
    return one;
  }

  // What is fused in one block is fused in all, also where an earlier error hides it.
  static void sections_of_others(const std::vector<Name>& order, std::vector<Begun>& begun) {
    std::map<std::string, Placements> fused;
    for (size_t i = 0; i < order.size(); ++i)
      for (const Placement& placement : begun[i].tensor.placements)
        if (placement.sections > 1) fused.emplace(without_numbers(order[i].first), begun[i].tensor.placements);
    for (size_t i = 0; i < order.size(); ++i) {
      ShardedTensor& tensor = begun[i].tensor;
      const auto like = fused.find(without_numbers(order[i].first));
      if (!begun[i].there || !tensor.by_shape || like == fused.end()) continue;
      if (joined_shape(tensor.grid, like->second, tensor.shapes) ==
          joined_shape(tensor.grid, tensor.placements, tensor.shapes))
        tensor.placements = like->second;
    }
  }

  std::optional<CandidateTensor> finished(const Name& name, Begun& one) {
    ShardedTensor& tensor = one.tensor;
    if (one.there && !joined_shape(tensor.grid, tensor.placements, tensor.shapes) && has(tensor, Kind::split))
      misfit(name, tensor);
    if (one.there) tensor.agree = copies_agree(tensor, tensor.placements);
    if (!one.there || (one.whole == nullptr && tensor.by_shape && !tensor.agree)) {
      ++count_.left_out;
      return std::nullopt;
    }
    count_.split += has(tensor, Kind::split);
    count_.sums += has(tensor, Kind::partial);
    count_.copies += has(tensor, Kind::replicated);
    count_.by_shape += tensor.by_shape;
    const CandidateTensor& like = *parts_[name][static_cast<size_t>(tensor.ranks.front())];
    return joined_tensor(like, std::move(tensor));
  }

  static bool has(const ShardedTensor& tensor, Kind kind) { return !tensor.axes(kind).empty(); }

  // The ranks that have it must be a grid of their own: one pipeline stage, the owner of an expert.
  bool take_parts(const std::vector<const CandidateTensor*>& parts, ShardedTensor& tensor) const {
    std::vector<std::set<int64_t>> places(mesh_.axes.size());
    for (size_t r = 0; r < parts.size(); ++r) {
      if (parts[r] == nullptr) continue;
      const std::vector<int64_t> at = mesh_.at(static_cast<int64_t>(r));
      for (size_t a = 0; a < at.size(); ++a) places[a].insert(at[a]);
      tensor.ranks.push_back(static_cast<int64_t>(r));
      tensor.dtypes.push_back(parts[r]->dtype);
      tensor.load.push_back(parts[r]->load);
      tensor.weight.emplace_back([&weight = ranks_[r].weight, name = parts[r]->path + ".weight"] {
        return weight ? weight(name) : at::Tensor();
      });
      tensor.shapes.push_back(parts[r]->shape);
    }
    tensor.mesh = tensor.grid = mesh_;
    for (size_t a = 0; a < places.size(); ++a) tensor.grid.axes[a].second = static_cast<int64_t>(places[a].size());
    return tensor.grid.ranks() == static_cast<int64_t>(tensor.ranks.size());
  }

  Placements said(const Name& name, const ShardedTensor& tensor) const {
    Placements first;
    for (const int64_t r : tensor.ranks) {
      const RankRecording& rank = ranks_[static_cast<size_t>(r)];
      Placements here = rank.shard.placements(name.first, name.second);
      if (r == tensor.ranks.front()) first = here;
      if (here != first)
        throw Error(fmt::format("{}: '{}' is placed {}, and {} says {}; the ranks of one run place a tensor alike",
                                rank.file, name.first, text_of(mesh_, here),
                                ranks_[static_cast<size_t>(tensor.ranks.front())].file, text_of(mesh_, first)));
    }
    return first;
  }

  [[noreturn]] void misfit(const Name& name, const ShardedTensor& tensor) const {
    throw Error(fmt::format("{}: '{}' is placed {}, which its shape {} does not fit; correct the specs",
                            ranks_[static_cast<size_t>(tensor.ranks.front())].file, name.first,
                            text_of(mesh_, tensor.placements), c10::str(at::IntArrayRef(tensor.shapes.front()))));
  }

  const std::vector<RankRecording>& ranks_;
  const WholeTensors& wholes_;
  const Mesh& mesh_;
  std::map<Name, std::vector<const CandidateTensor*>> parts_;  // by rank
  PlacementVotes votes_;
  Count count_;
};

}  // namespace

CandidateTensor joined_tensor(const CandidateTensor& like, ShardedTensor sharded) {
  CandidateTensor tensor = like;
  const auto shared = std::make_shared<const ShardedTensor>(std::move(sharded));
  if (auto shape = joined_shape(shared->grid, shared->placements, shared->shapes)) tensor.shape = std::move(*shape);
  for (const at::ScalarType dtype : shared->dtypes)
    if (dtype != tensor.dtype) tensor.dtype = at::promote_types(tensor.dtype, dtype);
  tensor.load = [shared] { return shared->whole(); };
  tensor.shards = shared;
  return tensor;
}

std::vector<CandidateTensor> join_shards(const std::vector<RankRecording>& ranks, const WholeTensors& wholes,
                                         std::vector<std::string>& notes) {
  return Joiner(ranks, wholes).join(notes);
}

}  // namespace parity
