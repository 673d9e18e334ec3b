// Where pairs are tried: what of a wrong port may be another value, and before which values something is missing.
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "pair/order.hpp"
#include "pair/trials.hpp"

namespace parity {

struct Trouble {
  size_t end = 0;              // a boundary whose value does not come out
  std::vector<size_t> before;  // unpaired boundaries that it is computed from since the pairs before it, ascending
};

class TrialPlaces {
 public:
  /// `scene` must outlive it.
  explicit TrialPlaces(const TrialScene& scene);

  /// Values that do not come out, with something unpaired before them: pairs that are off, results without one. What
  /// is known to be off comes last: it may be so by a value before it, wrong too, that has no pair. `visit` is given
  /// one after the other until it says false; what one has before it is found only then.
  void for_each_trouble(const std::function<bool(const Trouble& trouble)>& visit) const;
  /// The first few of them.
  std::vector<Trouble> troubled() const;

  /// Tensors of the candidate that may stand for another value, ascending.
  const std::vector<size_t>& free() const { return free_; }
  const PairingOrder& order() const { return order_; }
  const PortPair* paired(size_t b) const { return paired_[b]; }
  size_t count() const { return paired_.size(); }
  /// For each boundary those that it is directly computed from.
  const std::vector<std::vector<size_t>>& direct() const { return direct_; }

 private:
  enum class End { none, off, rounded, known };  // none: the value comes out; rounded: off by its dtype's rounding

  const Boundary& boundary(size_t b) const { return scene_.reference.boundaries[b]; }
  bool inside_unpaired(size_t b) const;
  std::vector<size_t> unpaired_before(size_t end) const;
  double usual_off() const;
  End end_at(size_t b, double usual) const;
  void find_free();
  void find_ends();

  const TrialScene& scene_;
  std::vector<const PortPair*> paired_;  // by boundary
  const std::vector<std::vector<size_t>> direct_;
  PairingOrder order_;
  std::vector<size_t> free_;
  bool repeats_ = false;      // are there free ones that are paired?
  std::vector<size_t> ends_;  // that do not come out
};

}  // namespace parity
