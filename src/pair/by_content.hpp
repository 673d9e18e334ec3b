// Which tensor of one program is which of another when nobody wrote a map: by content first, then order and names.
#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "pair/fingerprint.hpp"
#include "pair/name_map.hpp"

namespace parity {

struct NamedTensor {
  std::string path;
  int call = 0;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
  Fingerprint print;
};

struct Link;  // pair/links.hpp

struct AutoPair {
  size_t reference = 0, candidate = 0;
  Layout layout;          // candidate -> reference
  double confidence = 0;  // 0.5 … 1: about the probability that the pair is right
  std::string evidence;   // "content 0.9998, order, name 0.75"
  double distance = 1;    // of content
};

struct AutoPairing {
  std::vector<AutoPair> pairs;  // by reference; anchors are not repeated
  std::vector<size_t> unpaired_reference, unpaired_candidate;
  std::vector<std::string> notes;  // for people: a reference tensor that fuses several of the candidate's
};

/// Both lists in execution order; `anchors`: (reference, candidate) pairs known already (equal path, map rules).
///
/// A pair needs evidence: content that agrees and is distinct from the other tensors', or, where content differs (the
/// candidate may be wrong from some op on) or says nothing (a mask, a constant), a name like the reference's, confirmed
/// by its neighbours' order. Position alone never pairs. Names are learned: what content pairs in one block pairs the
/// same names in every other. Of several reference tensors with equal content the most similar name counts, then a
/// module's output before an op's result, then the earliest: that is where the value was made, the later ones only pass
/// it on. Each tensor is paired once; below 0.5 nothing is paired. Order: the heaviest chain of links that ascends in
/// both lists (gaps cost nothing, so lists of any length align), then single links across it whose content is beyond
/// doubt (q, k and v in another order). `possible`: false for links that what is known of the programs excludes.
AutoPairing pair_automatically(const std::vector<NamedTensor>& reference, const std::vector<NamedTensor>& candidate,
                               const std::vector<std::pair<size_t, size_t>>& anchors = {},
                               const std::function<bool(const Link&)>& possible = {});

}  // namespace parity
