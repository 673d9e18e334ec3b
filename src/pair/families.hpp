// Families of names: what content pairs in some blocks says which tensor is which in the others, whatever they hold.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pair/port_pairing.hpp"

namespace parity {

/// The numbers of both sides' names as straight lines: `layers.{i}/add.0` is `ffn_inp-{i}`, or `t{7 + 15 i}`. A line's
/// slope is what most families of a block have in common (of one family two points always lie on a line), its offset
/// what most of the family's own pairs say, the earliest of equals: a fault lies after what is still right. Names
/// without numbers of their own are counted by their place in the candidate's list.
class Families {
 public:
  /// Both must outlive this.
  Families(const Program& reference, const std::vector<CandidateTensor>& candidate);

  /// A pair that content or a name in common vouches for; in the reference's order.
  void learn(const PortPair& pair);

  struct Counterpart {
    size_t candidate = 0;
    Layout layout;         // that of the pairs it follows from
    std::string line;      // "as t12 is layers.0.mlp"
    bool counted = false;  // the candidate's names count its tensors, whatever they are
  };
  /// What the lines say; shapes are those of a known pair of the family, or, in another call (a token behind a prompt),
  /// agree as those do.
  std::optional<Counterpart> counterpart(size_t boundary) const;

  /// Of `pairs` (learned before) those to which the lines give each other's candidates, or one that is free while
  /// another free boundary has theirs: gate and up exchanged pair crosswise by content, and only the fault says so.
  std::vector<size_t> exchanged(const std::vector<PortPair>& pairs, const std::vector<bool>& marked) const;

 private:
  using Numbers = std::vector<int64_t>;
  struct Label {
    std::string text;  // with # for each number
    Numbers numbers;
  };
  struct Place {
    std::string family, group;  // "layers.#.mlp", "layers."
    int64_t index = 0;
  };
  struct Known {
    int64_t index = 0;
    Label label;
    PortPair pair;
  };
  struct Line {
    const Known* like = nullptr;  // the earliest pair on it; nullptr: there is none
    Numbers offset, slope;
  };
  using Group = std::pair<std::string, std::string>;  // the reference's, the candidate's text

  static std::vector<Place> places_of(const Boundary& boundary);
  std::optional<Numbers> slope_of(const Group& group, size_t numbers) const;
  std::optional<Numbers> voted_slope(const Group& group) const;
  Line line_of(const std::string& group, const std::vector<Known>& known) const;
  bool counts_tensors(const std::string& text) const;
  std::optional<Layout> layout_as(const Known& like, size_t boundary, size_t candidate) const;

  const Program& reference_;
  const std::vector<CandidateTensor>& candidate_;
  std::vector<Label> labels_[2];  // of each candidate tensor: by name, by place
  std::map<std::pair<std::string, Numbers>, size_t> by_label_;
  std::map<std::string, std::vector<Known>> known_[2];  // by family
  mutable std::map<std::string, Line> lines_[2];        // by family, since the last pair was learned
  std::map<Group, std::map<Numbers, int>> slopes_;
  std::map<std::string, std::set<std::string>> families_;  // by the candidate's text
};

}  // namespace parity
