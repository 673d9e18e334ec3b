#include "pair/forced_pairs.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "measure/measure.hpp"
#include "pair/limits.hpp"
#include "pair/segments.hpp"

namespace parity {

ForcedPairs::ForcedPairs(PortPairing& pairing, const Dump& dump, const Program& reference,
                         const std::vector<CandidateTensor>& candidate)
    : work(kPairLimits.moved.work),
      dump_(dump),
      reference_(reference),
      candidate_(candidate),
      paired_(reference.boundaries.size(), nullptr),
      work_of_ops_(work_of_ops(reference)),
      flow_(analyse_flow(reference)) {
  for (PortPair& pair : pairing.pairs) {
    paired_[pair.boundary] = &pair;
    by_memory_[memory_of(pair.boundary)].push_back(pair.boundary);
  }
  const auto look = [&](size_t b, const at::Tensor& value) -> std::optional<at::Tensor> {
    if (paired_[b] == nullptr || !at::isFloatingType(value.scalar_type())) return std::nullopt;
    auto own = theirs(b);
    if (own && value.sizes() == own->sizes()) off_[b] = distance(value, *own);
    return own;
  };
  try {
    replay(dump, reference, {}, look);
  } catch (const Error&) {  // past an op that does not run on the port's values nothing is known
  }
}

bool ForcedPairs::off_by_far(size_t b) const {
  const auto found = off_.find(b);
  return found != off_.end() && found->second > kPairLimits.moved.far;
}

std::optional<at::Tensor> ForcedPairs::theirs(size_t b) const {
  const PortPair& pair = *paired_[b];
  return pair.layout.as_shape(candidate_[pair.candidate].load(), reference_.boundaries[b].value.shape);
}

int64_t ForcedPairs::memory_of(size_t b) const {
  const int64_t id = reference_.boundaries[b].value.id;
  const auto root = flow_.root.find(id);
  return root == flow_.root.end() ? id : root->second;
}

std::vector<size_t> ForcedPairs::names_of(size_t b) const {
  std::vector<size_t> names{b};
  const int64_t memory = memory_of(b);
  const auto others = by_memory_.find(memory);
  if (paired_[b] == nullptr || others == by_memory_.end() || flow_.last_write.contains(memory)) return names;
  std::optional<at::Tensor> tensor;
  for (const size_t other : others->second) {
    if (other == b || paired_[other] == nullptr) continue;
    if (!tensor && !(tensor = theirs(b))) return names;
    const auto value = theirs(other);
    if (value && value->numel() == tensor->numel() && at::equal(value->flatten(), tensor->flatten()))
      names.push_back(other);
  }
  return names;
}

std::vector<bool> ForcedPairs::marked() const {
  std::vector<bool> marked(paired_.size());
  for (size_t i = 0; i < marked.size(); ++i) marked[i] = paired_[i] != nullptr;
  return marked;
}

std::vector<bool> ForcedPairs::marked_without(const std::vector<size_t>& group) const {
  std::vector<bool> left = marked();
  for (const size_t b : group)
    for (const size_t name : names_of(b)) left[name] = false;
  return left;
}

std::vector<size_t> ForcedPairs::followers(const std::vector<bool>& marked, size_t from) const {
  std::vector<bool> with = marked;
  with[from] = true;
  const auto direct = reference_.marked_ancestors(with);
  const auto most = static_cast<size_t>(kPairLimits.moved.followers);
  std::vector<size_t> found;
  for (size_t t = from + 1; t < direct.size() && found.size() < most; ++t)
    if (marked[t] && off_.contains(t) && std::find(direct[t].begin(), direct[t].end(), from) != direct[t].end())
      found.push_back(t);
  return found;
}

OffByBoundary ForcedPairs::off_on(const PartOnPairs& part, std::map<int64_t, at::Tensor> given, const Look& look,
                                  const std::vector<size_t>& free) {
  ReplayOptions options;
  options.part = part.part;
  options.given = std::move(given);
  for (const size_t a : part.needed)
    if (paired_[a] != nullptr)
      if (auto value = theirs(a)) options.given.try_emplace(reference_.boundaries[a].value.id, *value);
  work -= part.work;
  OffByBoundary off;
  try {
    replay(dump_, reference_, options, [&](size_t t, const at::Tensor& value) -> std::optional<at::Tensor> {
      if (look) look(t, value);
      if (paired_[t] == nullptr || std::find(free.begin(), free.end(), t) != free.end()) return std::nullopt;
      auto own = theirs(t);
      if (own) off[t] = distance(value, *own);
      return own;
    });
  } catch (const Error&) {  // a part that cannot run alone says nothing
    off.clear();
  }
  return off;
}

bool ForcedPairs::worse(const OffByBoundary& off) const {
  return std::any_of(off.begin(), off.end(), [&](const auto& at) {
    const auto before = off_.find(at.first);
    return before != off_.end() && at.second > kPairLimits.moved.far && at.second > before->second;
  });
}

int ForcedPairs::healed(const OffByBoundary& off) const {
  if (worse(off)) return 0;
  const MovedLimits& limits = kPairLimits.moved;
  int count = 0;
  for (const auto& [t, now] : off) {
    const auto found = off_.find(t);
    if (found == off_.end()) continue;
    const double before = found->second;
    count += before > limits.far && now <= limits.far && now * limits.clearly <= before;
  }
  return count;
}

void ForcedPairs::believe(const OffByBoundary& off) {
  for (const auto& [t, now] : off) off_[t] = now;
}

void ForcedPairs::move(size_t from, std::optional<size_t> to) {
  if (to) paired_[*to] = paired_[from];
  paired_[from] = nullptr;
  off_.erase(from);
}

double ForcedPairs::distance(const at::Tensor& here, const at::Tensor& there) {
  const Stats found = measure_sums(here, there);
  const double distance = found.rel_l2.value_or(1);  // of finite elements: where NaN is on one side, of few, or none
  return found.special_mismatch == 0 && std::isfinite(distance) ? distance : 1;
}

}  // namespace parity
