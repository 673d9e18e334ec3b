#include "calls/parts_to_come.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "calls/call_shapes.hpp"
#include "pair/layout_advice.hpp"

namespace parity {
namespace {

// All of it, if only in another layout: whether that is right shows without any other call.
bool is_whole(const Shape& reference, const Shape& candidate) {
  return std::ranges::is_permutation(reference, candidate) || differ_by_merged_axes(reference, candidate);
}

class PartsToCome {
 public:
  PartsToCome(const Program& reference, const std::vector<CandidateTensor>& candidate,
              const std::vector<PortPair>& pairs)
      : reference_(reference), candidate_(candidate), pairs_(candidate.size(), nullptr) {
    for (const PortPair& pair : pairs)
      if (pairs_[pair.candidate] == nullptr) pairs_[pair.candidate] = &pair;
    for (const Leaf& leaf : reference.leaves)
      (leaf.is_weight() ? of_weights_ : of_inputs_).insert(leaf.value.shape.begin(), leaf.value.shape.end());
    for (const Boundary& b : reference.boundaries) {
      elements_[b.path] += b.value.elements();
      if (!b.value.shape.empty()) last_[b.path].insert(b.value.shape.back());
    }
  }

  std::vector<CandidateTensor> run() {
    for (size_t c = 0; c < candidate_.size(); ++c)
      if (!waits(c)) judged_.push_back(c);
    std::ranges::sort(judged_);
    std::vector<CandidateTensor> tensors;
    for (const size_t c : judged_) tensors.push_back(candidate_[c]);
    return tensors;
  }

 private:
  using Extent = std::tuple<int, size_t, size_t, int64_t>;  // call, number of axes, axis, extent

  const Boundary& boundary(const PortPair& pair) const { return reference_.boundaries[pair.boundary]; }

  bool waits(size_t c) {
    const PortPair* pair = pairs_[c];
    const Shape& shape = candidate_[c].shape;
    if (pair != nullptr && pair->layout.as_it_is() && is_another_width(*pair, shape)) return false;
    if (divided_) return true;
    if (const auto found = shorter_.find(candidate_[c].path); found != shorter_.end())
      return goes_on(found->second, shape);
    if (pair == nullptr || !pair->layout.as_it_is()) return false;
    const Shape& whole = boundary(*pair).value.shape;
    if (is_whole(whole, shape)) {
      for (size_t a = 0; a < whole.size(); ++a) known_.insert({boundary(*pair).call, whole.size(), a, whole[a]});
      return false;
    }
    if (!others_are_whole(*pair, shape)) return divided_ = true;
    if (has_more(whole, shape)) return false;
    shorter_[candidate_[c].path] = {c, c10::multiply_integers(shape), elements_.at(boundary(*pair).path)};
    return true;
  }

  // A width is the same in all calls, and an extent that weights have and inputs have not: no axis of samples or
  // tokens.
  bool is_another_width(const PortPair& pair, const Shape& shape) const {
    const Shape& whole = boundary(pair).value.shape;
    if (whole.empty() || shape.empty() || is_whole(whole, shape)) return false;
    const int64_t width = whole.back(), other = shape.back();
    if (!of_weights_.contains(width) || of_inputs_.contains(width)) return false;
    if (last_.at(boundary(pair).path).size() > 1) return false;
    if (whole.size() == shape.size()) return other != width;
    return other == 0 || (other % width != 0 && width % other != 0);  // heads and their features may be one axis
  }

  // Does something before it in this call have the extents that it lacks?
  bool others_are_whole(const PortPair& pair, const Shape& shape) const {
    const Shape& whole = boundary(pair).value.shape;
    for (size_t a = 0; a < whole.size(); ++a) {
      const bool differs = whole.size() == shape.size() ? whole[a] != shape[a] : a + 1 < whole.size();
      if (differs && !known_.contains({boundary(pair).call, whole.size(), a, whole[a]})) return false;
    }
    return true;
  }

  static bool has_more(const Shape& whole, const Shape& shape) {
    if (whole.size() != shape.size()) return c10::multiply_integers(shape) > c10::multiply_integers(whole);
    for (size_t a = 0; a < whole.size(); ++a)
      if (shape[a] > whole[a]) return true;
    return false;
  }

  struct Shorter {
    size_t first = 0;
    int64_t elements = 0;  // of its calls so far
    int64_t all = 0;       // of the reference's
    bool judged = false;
  };

  // A later call of a name whose first was shorter. With more than the reference has in all calls it was no part.
  bool goes_on(Shorter& shorter, const Shape& shape) {
    shorter.elements += c10::multiply_integers(shape);
    if (!shorter.judged && shorter.elements > shorter.all) {
      shorter.judged = true;
      judged_.push_back(shorter.first);
    }
    return true;
  }

  const Program& reference_;
  const std::vector<CandidateTensor>& candidate_;
  std::vector<const PortPair*> pairs_;             // by candidate
  std::set<int64_t> of_weights_, of_inputs_;       // extents
  std::map<std::string, int64_t> elements_;        // of all calls of the reference, by path
  std::map<std::string, std::set<int64_t>> last_;  // extents of the last axis in all calls of the reference, by path
  std::set<Extent> known_;                         // of the port's whole values so far
  std::map<std::string, Shorter> shorter_;         // by path
  std::vector<size_t> judged_;
  bool divided_ = false;
};

}  // namespace

std::vector<CandidateTensor> without_parts_to_come(const Program& reference,
                                                   const std::vector<CandidateTensor>& candidate,
                                                   const std::vector<PortPair>& pairs) {
  return PartsToCome(reference, candidate, pairs).run();
}

}  // namespace parity
