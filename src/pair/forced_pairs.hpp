// One replay of the reference's program on the candidate's values, and parts of it again under other pairs.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "pair/candidate.hpp"
#include "pair/part_on_pairs.hpp"
#include "pair/port_pairing.hpp"
#include "trace/flow.hpp"

namespace parity {

/// By paired boundary: relative L2 of the candidate's value from what the program computes on its earlier ones.
using OffByBoundary = std::map<size_t, double>;

class ForcedPairs {
 public:
  /// The arguments must outlive it; `pairing.pairs` must stay where they are in memory. Throws Error for unusable
  /// recordings.
  ForcedPairs(PortPairing& pairing, const Dump& dump, const Program& reference,
              const std::vector<CandidateTensor>& candidate);

  size_t count() const { return paired_.size(); }
  /// The pair of a boundary, or nullptr.
  PortPair* paired(size_t b) const { return paired_[b]; }
  bool off_by_far(size_t b) const;
  double off(size_t b) const { return off_.at(b); }
  /// The candidate's value in the reference's layout; nullopt when its shape does not fit.
  std::optional<at::Tensor> theirs(size_t b) const;
  /// b, and the other paired boundaries that are its value on both sides: a view of it, a module that returns it.
  std::vector<size_t> names_of(size_t b) const;
  /// By boundary: is it paired?
  std::vector<bool> marked() const;
  /// The same without `names_of` each of `group`.
  std::vector<bool> marked_without(const std::vector<size_t>& group) const;
  /// The next paired values that are computed from `from`, in execution order.
  std::vector<size_t> followers(const std::vector<bool>& marked, size_t from) const;

  /// What computes `targets` since the pairs of `marked`.
  PartOnPairs part_to(const std::vector<size_t>& targets, const std::vector<bool>& marked) const {
    return part_on_pairs(reference_, marked, targets, work_of_ops_);
  }
  using Look = std::function<void(size_t boundary, const at::Tensor& value)>;
  /// How far the part's paired values are off when these are given; empty when it cannot run alone. `look` sees the
  /// value of each boundary that the part visits. The pairs of `free` are left out.
  OffByBoundary off_on(const PartOnPairs& part, std::map<int64_t, at::Tensor> given, const Look& look = nullptr,
                       const std::vector<size_t>& free = {});
  /// Is some value off by far that was less so?
  bool worse(const OffByBoundary& off) const;
  /// Values that were off by far and agree so, if none is worse; else 0.
  int healed(const OffByBoundary& off) const;

  /// Other pairs are believed: these values are off by so much now.
  void believe(const OffByBoundary& off);
  /// No pair at `from` any more; its pair, changed by the caller, is that of `to`, if given.
  void move(size_t from, std::optional<size_t> to);

  double work;  // multiplications left for parts

  static double distance(const at::Tensor& here, const at::Tensor& there);

 private:
  int64_t memory_of(size_t b) const;

  const Dump& dump_;
  const Program& reference_;
  const std::vector<CandidateTensor>& candidate_;
  std::vector<PortPair*> paired_;  // by boundary
  const std::vector<double> work_of_ops_;
  const Flow flow_;
  std::map<int64_t, std::vector<size_t>> by_memory_;  // paired boundaries, by the first value with that memory
  OffByBoundary off_;
};

}  // namespace parity
