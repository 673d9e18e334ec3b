// Every reference tensor that a candidate tensor might be, with what speaks for it: content, name, shape.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pair/by_content.hpp"
#include "pair/tokens.hpp"

namespace parity {

struct Link {
  size_t reference = 0, candidate = 0;
  double distance = 1;   // of content, about the relative L2 difference; 1: unlike, or not comparable
  double weight = 0;     // what the content's agreement is worth, 0 … 1
  double name = 0;       // likeness of names, 0 … 1
  bool learned = false;  // the name is known from a pair of equal names whose content agrees
  Layout layout;
};

/// Is only a part of the candidate's tensor meant?
inline bool is_part(const Link& link) { return link.layout.split || link.layout.slice; }

/// The names of both lists, and what was learned about them.
class PairingNames {
 public:
  PairingNames(const std::vector<NamedTensor>& reference, const std::vector<NamedTensor>& candidate);

  /// 0 … 1; other blocks' numbers leave a fifth of it. After `learn` a learned name is 1 and all others at most 0.3.
  double similarity(size_t reference, size_t candidate, bool* learned = nullptr) const;
  void learn(size_t reference, size_t candidate, const Layout& layout);
  std::optional<Layout> learned_layout(size_t reference, size_t candidate) const;
  /// Reference tensors with a name at least `least` like the candidate's, in the same block; the most similar first, at
  /// most `most`.
  std::vector<size_t> like(size_t candidate, double least, size_t most) const;
  bool is_op(int side, size_t tensor) const { return tokens_[side][tensor].op; }  // side 0: reference, 1: candidate

 private:
  using Key = std::pair<std::string, std::vector<int>>;
  double shapes_alike(int reference_shape, int candidate_shape) const;
  std::pair<int, double> learned_shape(int candidate_shape) const;

  const std::vector<NamedTensor>&reference_, &candidate_;
  std::vector<NameTokens> tokens_[2];    // reference, candidate
  std::vector<int> shape_[2];            // number of NameTokens::shape
  std::vector<NameTokens> examples_[2];  // by that number
  mutable std::vector<float> alike_;     // [reference shape][candidate shape], -1: not known yet
  std::map<std::pair<int, std::vector<int>>, std::vector<size_t>> by_name_;  // reference
  std::map<int, std::map<int, int>> votes_;  // candidate shape -> reference shape -> pairs
  std::map<std::pair<size_t, size_t>, Layout> layouts_;
  std::map<std::pair<int, int>, std::vector<std::pair<size_t, size_t>>> learned_pairs_;
};

/// Links of one candidate tensor, best content first.
using Links = std::vector<std::vector<Link>>;

/// Content of the candidate's tensor under all readings next to the reference's: the best, or the layout that shapes
/// alone allow; nullopt: no layout makes their shapes equal.
/// `r`, `c`: the numbers that the link has for them.
std::optional<Link> compare_content(const NamedTensor& reference, const NamedTensor& candidate, size_t r = 0,
                                    size_t c = 0);

/// The layout of the candidate, whole, under which it is likest, however unlike: what a fault has left of the content
/// must say which. nullopt: none is.
std::optional<Layout> likeliest_layout(const NamedTensor& reference, const NamedTensor& candidate);

/// Is it so near under some reading? As quick as scales are told apart: for many tensors of which hardly one is.
bool is_near(const NamedTensor& reference, const NamedTensor& candidate, double distance);

/// Is it the same to rounding of half width, in some layout?
bool same_content(const NamedTensor& reference, const NamedTensor& candidate);

/// All links by content (correlation of samples at least 0.6, the 24 best a candidate) and by name.
Links find_links(const std::vector<NamedTensor>& reference, const std::vector<NamedTensor>& candidate,
                 const PairingNames& names);

/// Adds links by learned names and renews all names.
void renew_names(const std::vector<NamedTensor>& reference, const std::vector<NamedTensor>& candidate,
                 const PairingNames& names, Links& links);

}  // namespace parity
