// How sure it is that two tensors are each other's counterparts: content, name and order as independent witnesses.
#pragma once
#include <string>
#include <vector>

#include "pair/links.hpp"

namespace parity {

/// 1 up to the noise of a bf16 run, 0 where about half of the content is something else; times what content is worth.
double agreement(const Link& link);

/// How firmly a link stands as a witness of its neighbours' order, by content or by name: 0 … 1.
double firmness(const Link& link);

struct Confidence {
  double value = 0;  // about the probability that the pair is right
  std::string evidence;
  bool has_twins = false;  // content alone cannot tell it from others of the reference, nor does a name
};

/// Weighs links of two lists. All of them are read when asked, never kept: they outlive this.
class LinkWeigher {
 public:
  LinkWeigher(const std::vector<NamedTensor>& reference, const std::vector<NamedTensor>& candidate,
              const PairingNames& names, const Links& links, const std::vector<std::vector<const Link*>>& by_reference)
      : reference_(reference), candidate_(candidate), names_(names), links_(links), by_reference_(by_reference) {}

  /// 1: no tensor of other content fits as well; 0: another one does.
  double distinct(const Link& link) const { return rivals_of(link).distinct; }

  /// `order`: 0 … 1, how sure its neighbours' order is; `noise`: their distance, what rounding, or a fault before them,
  /// makes of equal tensors there.
  Confidence of(const Link& link, double order, double noise) const;

 private:
  struct Rivals {
    double distinct = 1;
    size_t equal = 0;   // reference tensors that content cannot tell from this one
    bool named = true;  // this one has the most similar name of them
  };
  Rivals rivals_of(const Link& link) const;
  bool name_is_ambiguous(const Link& link) const;
  static std::string evidence(const Link& link, double order, const Rivals& rivals);

  const std::vector<NamedTensor>&reference_, &candidate_;
  const PairingNames& names_;
  const Links& links_;
  const std::vector<std::vector<const Link*>>& by_reference_;
};

}  // namespace parity
