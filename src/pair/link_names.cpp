// Names of two lists of tensors: how alike, and which name of one is which of the other, learned from pairs.
#include <algorithm>

#include "pair/links.hpp"

namespace parity {
namespace {
constexpr double kOtherBlock = 0.2, kOtherCall = 0.8, kUnlearned = 0.3;
constexpr size_t kFewShapes = 3'000'000;  // product of the numbers of names: beyond, only equal names are looked up
}  // namespace

PairingNames::PairingNames(const std::vector<NamedTensor>& reference, const std::vector<NamedTensor>& candidate)
    : reference_(reference), candidate_(candidate) {
  for (const int side : {0, 1}) {
    std::unordered_map<std::string, int> numbers;
    for (const NamedTensor& tensor : side == 0 ? reference : candidate) {
      NameTokens tokens = name_tokens(tensor.path);
      // an op's result never has the name of a module
      const auto [known, fresh] =
          numbers.emplace(tokens.shape + (tokens.op ? "/" : ""), static_cast<int>(numbers.size()));
      if (fresh) examples_[side].push_back(tokens);
      shape_[side].push_back(known->second);
      tokens_[side].push_back(std::move(tokens));
    }
  }
  for (size_t r = 0; r < reference.size(); ++r) by_name_[{shape_[0][r], tokens_[0][r].blocks}].push_back(r);
  alike_.assign(examples_[0].size() * examples_[1].size(), -1);
}

double PairingNames::shapes_alike(int reference_shape, int candidate_shape) const {
  float& known = alike_[static_cast<size_t>(reference_shape) * examples_[1].size() + candidate_shape];
  if (known < 0)
    known = static_cast<float>(name_similarity(examples_[0][reference_shape], examples_[1][candidate_shape]));
  return known;
}

std::pair<int, double> PairingNames::learned_shape(int candidate_shape) const {
  const auto votes = votes_.find(candidate_shape);
  if (votes == votes_.end()) return {-1, 0};
  int all = 0, most = 0, shape = -1;
  for (const auto& [reference_shape, count] : votes->second) {
    all += count;
    if (count > most) most = count, shape = reference_shape;
  }
  return {shape, static_cast<double>(most) / all};
}

double PairingNames::similarity(size_t r, size_t c, bool* learned) const {
  const auto [shape, share] = learned_shape(shape_[1][c]);
  double likeness = shapes_alike(shape_[0][r], shape_[1][c]);
  const std::vector<int>&a = tokens_[0][r].blocks, &b = tokens_[1][c].blocks;
  const bool same_block = a == b;
  if (learned) *learned = false;
  if (shape >= 0 && share > 0.6) {
    if (shape == shape_[0][r]) {
      likeness = 1;
      if (learned) *learned = same_block;
    } else {
      likeness = std::min(likeness, kUnlearned);
    }
  }
  if (!same_block)
    likeness *= a.size() == b.size() || (!a.empty() && !b.empty() && a[0] != b[0]) ? kOtherBlock : kOtherCall;
  return reference_[r].call == candidate_[c].call ? likeness : likeness * kOtherCall;
}

void PairingNames::learn(size_t r, size_t c, const Layout& layout) {
  if (tokens_[0][r].blocks != tokens_[1][c].blocks) return;
  ++votes_[shape_[1][c]][shape_[0][r]];
  learned_pairs_[{shape_[0][r], shape_[1][c]}].push_back({r, c});
  layouts_[{r, c}] = layout;
}

std::optional<Layout> PairingNames::learned_layout(size_t r, size_t c) const {
  const auto pairs = learned_pairs_.find({shape_[0][r], shape_[1][c]});
  if (pairs == learned_pairs_.end()) return std::nullopt;
  for (const auto& [known_r, known_c] : pairs->second)
    if (reference_[known_r].shape == reference_[r].shape && candidate_[known_c].shape == candidate_[c].shape)
      return layouts_.at({known_r, known_c});
  return std::nullopt;
}

std::vector<size_t> PairingNames::like(size_t c, double least, size_t most) const {
  std::vector<std::pair<double, int>> shapes;
  const auto [learned, share] = learned_shape(shape_[1][c]);
  if (learned >= 0 && share > 0.6) {
    shapes.push_back({1, learned});
  } else if (alike_.size() <= kFewShapes) {
    for (size_t shape = 0; shape < examples_[0].size(); ++shape)
      if (const double alike = shapes_alike(static_cast<int>(shape), shape_[1][c]); alike >= least)
        shapes.push_back({alike, static_cast<int>(shape)});
  } else {
    for (size_t shape = 0; shape < examples_[0].size(); ++shape)
      if (examples_[0][shape].shape == examples_[1][shape_[1][c]].shape) shapes.push_back({1, static_cast<int>(shape)});
  }
  std::sort(shapes.rbegin(), shapes.rend());
  std::vector<size_t> found;
  for (const auto& [alike, shape] : shapes) {
    const auto named = by_name_.find({shape, tokens_[1][c].blocks});
    if (named == by_name_.end()) continue;
    for (const size_t r : named->second) {
      if (named->second.size() > most && reference_[r].call != candidate_[c].call) continue;
      if (found.size() >= most) return found;
      found.push_back(r);
    }
  }
  return found;
}

}  // namespace parity
