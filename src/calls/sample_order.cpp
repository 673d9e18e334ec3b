#include "calls/sample_order.hpp"

#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "calls/call_shapes.hpp"
#include "calls/limits.hpp"
#include "calls/permutation.hpp"
#include "calls/votes.hpp"
#include "pair/layout_advice.hpp"

namespace parity {
namespace {

class SampleOrder {
 public:
  SampleOrder(const RecordedSide& reference, const RecordedSide& port, const std::vector<CandidateTensor>& tensors,
              const NameMap* map)
      : reference_(reference), port_(port), tensors_(tensors), paths_(call_shapes(*reference.program, tensors, map)) {
    std::map<int64_t, int> votes;
    for (const Boundary& b : reference.program->boundaries)
      if (const Shape& shape = b.value.shape;
          b.comparable && shape.size() > 1 && static_cast<double>(shape[0]) <= kCallLimits.any_order)
        ++votes[shape[0]];
    samples_ = most_of(votes).value_or(1);
    for (const Boundary& b : reference.program->boundaries)
      if (b.comparable && begins_with_samples(b.value.shape)) batches_.insert(b.value.shape);
  }

  /// By the reference's sample that of the port; empty: in order, or nothing tells.
  Permutation find() const {
    if (samples_ < 2) return {};
    Permutation found;
    const auto contradicts = [&](const std::optional<Permutation>& order) {
      if (!order) return false;
      if (found.empty()) found = *order;
      return std::ranges::is_sorted(*order) || *order != found;
    };
    for (const auto& [mine, theirs] : inputs())
      if (contradicts(order_of(mine, theirs))) return {};
    const std::map<size_t, at::Tensor> own = first_own();
    double looked_at = 0;
    for (const Boundary& b : reference_.program->boundaries) {
      const std::vector<at::Tensor> like = may_tell(b) ? tensors_like(b, own) : std::vector<at::Tensor>();
      if (like.empty()) continue;
      const at::Tensor mine = stored_value(*reference_.dump, b.value);
      for (const at::Tensor& theirs : like)
        if (contradicts(order_of(mine, theirs))) return {};
      if (++looked_at == kCallLimits.paths) break;
    }
    return found;
  }

  /// Is the outermost axis of the port's tensor that of the samples, alone or with the one behind it?
  bool has_samples(const CallShapes& path, size_t call) const {
    const Shape& theirs = path.port.shapes.at(call);
    if (theirs.empty()) return false;
    const auto mine = path.reference.shapes.find(call);
    if (mine != path.reference.shapes.end()) return begins_with_samples(mine->second) && theirs[0] % samples_ == 0;
    const auto laid_out_otherwise = [&](const Shape& batch) { return have_extents_alike(theirs, batch); };
    return is_like_a_batch(theirs) ||
           (begins_with_samples(theirs) && std::ranges::any_of(batches_, laid_out_otherwise));
  }

  const std::vector<CallShapes>& paths() const { return paths_; }

 private:
  using Values = std::pair<at::Tensor, at::Tensor>;  // the reference's and the port's

  // The batch, as it is or with some of its axes as one.
  bool is_batch(const Shape& theirs, const Shape& mine) const {
    return theirs == mine || (!theirs.empty() && theirs[0] % samples_ == 0 && differ_by_merged_axes(theirs, mine));
  }

  bool is_like_a_batch(const Shape& theirs) const {
    return std::ranges::any_of(batches_, [&](const Shape& batch) { return is_batch(theirs, batch); });
  }

  // Those of one name that both sides stored.
  std::vector<Values> inputs() const {
    std::vector<Values> found;
    if (port_.dump == nullptr) return found;
    for (const Leaf& mine : reference_.program->leaves)
      for (const Leaf& theirs : port_.program->leaves)
        if (mine.is_recorded_input() && theirs.is_recorded_input() && mine.names == theirs.names &&
            begins_with_samples(mine.value.shape) && mine.value.shape == theirs.value.shape)
          found.emplace_back(stored_value(*reference_.dump, mine.value), stored_value(*port_.dump, theirs.value));
    return found;
  }

  bool begins_with_samples(const Shape& shape) const { return shape.size() > 1 && shape[0] == samples_; }

  bool may_tell(const Boundary& b) const {
    return b.comparable && !b.value.key.empty() && at::isFloatingType(b.value.dtype) &&
           begins_with_samples(b.value.shape) && b.value.elements() <= kCallLimits.telling;
  }

  std::optional<size_t> named_as(const Boundary& b) const {
    const auto named = named_.find({b.path, b.call});
    if (named == named_.end() || !is_batch(tensors_[named->second].shape, b.value.shape)) return std::nullopt;
    return named->second;
  }

  // That of its name; where there is none, those of the port's own names that may be this value.
  std::vector<at::Tensor> tensors_like(const Boundary& b, const std::map<size_t, at::Tensor>& own) const {
    if (const auto named = named_as(b)) return {tensors_[*named].load()};
    std::vector<at::Tensor> like;
    for (const auto& [c, theirs] : own)
      if (is_batch(theirs.sizes().vec(), b.value.shape)) like.push_back(theirs);
    return like;
  }

  // Batches under names of the port's own, those that it made first.
  std::map<size_t, at::Tensor> first_own() const {
    std::set<size_t> places;
    for (const CallShapes& path : paths_)
      for (const auto& [call, c] : path.tensors)
        if (path.own && is_like_a_batch(tensors_[c].shape) && at::isFloatingType(tensors_[c].dtype) &&
            c10::multiply_integers(tensors_[c].shape) <= kCallLimits.telling)
          places.insert(c);
    std::map<size_t, at::Tensor> own;
    for (const size_t c : places)
      if (static_cast<double>(own.size()) < kCallLimits.paths) own.emplace(c, tensors_[c].load());
    return own;
  }

  static std::optional<Permutation> order_of(const at::Tensor& mine, const at::Tensor& theirs) {
    return permutation_by_content(mine.to(at::kDouble).unbind(), theirs.reshape(mine.sizes()).to(at::kDouble).unbind());
  }

  const RecordedSide reference_, port_;
  const std::vector<CandidateTensor>& tensors_;
  const std::vector<CallShapes> paths_;
  const NamedTensors named_ = named_tensors(paths_);
  int64_t samples_ = 1;
  std::set<Shape> batches_;  // shapes of the reference's
};

at::Tensor in_order(const at::Tensor& batch, const Permutation& order) {
  const at::Tensor places = at::tensor(std::vector<int64_t>(order.begin(), order.end()));
  return batch.unflatten(0, {static_cast<int64_t>(order.size()), -1}).index_select(0, places).flatten(0, 1);
}

}  // namespace

void order_samples(const RecordedSide& reference, const RecordedSide& port, std::vector<CandidateTensor>& tensors,
                   const NameMap* map, std::vector<std::string>& notes) {
  const SampleOrder samples(reference, port, tensors, map);
  const Permutation order = samples.find();
  if (order.empty()) return;
  for (const CallShapes& path : samples.paths())
    for (const auto& [call, c] : path.tensors)
      if (samples.has_samples(path, call))
        tensors[c].load = [load = tensors[c].load, order] { return in_order(load(), order); };
  notes.push_back(fmt::format("the port's batch has the samples in another order, {}: they are compared by content",
                              fmt::join(order, ", ")));
}

}  // namespace parity
