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
      work_of_ops_(work_of_ops(reference)) {
  for (PortPair& pair : pairing.pairs) paired_[pair.boundary] = &pair;
  replay(dump, reference, {}, [&](size_t b, const at::Tensor& value) -> std::optional<at::Tensor> {
    if (paired_[b] == nullptr || !at::isFloatingType(value.scalar_type())) return std::nullopt;
    auto own = theirs(b);
    if (own && value.sizes() == own->sizes()) off_[b] = distance(value, *own);
    return own;
  });
}

bool ForcedPairs::off_by_far(size_t b) const {
  const auto found = off_.find(b);
  return found != off_.end() && found->second > kPairLimits.moved.far;
}

std::optional<at::Tensor> ForcedPairs::theirs(size_t b) const {
  const at::Tensor value = paired_[b]->layout.fit_reference(candidate_[paired_[b]->candidate].load()).tensor;
  if (!value.defined() || value.sizes() != at::IntArrayRef(reference_.boundaries[b].value.shape)) return std::nullopt;
  return value;
}

std::vector<bool> ForcedPairs::marked_without(size_t b) const {
  std::vector<bool> marked(paired_.size());
  for (size_t i = 0; i < marked.size(); ++i) marked[i] = i != b && paired_[i] != nullptr;
  return marked;
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

OffByBoundary ForcedPairs::off_on(const PartOnPairs& part, std::map<int64_t, at::Tensor> given,
                                  const at::Tensor* tensor, OffByBoundary* near) {
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
      if (paired_[t] == nullptr) {
        if (near != nullptr) (*near)[t] = distance(value, *tensor);
        return std::nullopt;
      }
      auto own = theirs(t);
      if (own) off[t] = distance(value, *own);
      return own;
    });
  } catch (const Error&) {  // a part that cannot run alone says nothing
    off.clear();
  }
  return off;
}

int ForcedPairs::healed(const OffByBoundary& off) const {
  const MovedLimits& limits = kPairLimits.moved;
  int count = 0;
  for (const auto& [t, now] : off) {
    const auto found = off_.find(t);
    if (found == off_.end()) continue;
    const double before = found->second;
    if (now > limits.far && now > before) return 0;
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
  const double found = measure_sums(here, there).rel_l2.value_or(1);
  return std::isfinite(found) ? found : 1;
}

}  // namespace parity
