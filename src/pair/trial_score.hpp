// What a pair on trial gains: how much better the port's later values are explained when the program goes on from it.
#pragma once
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "pair/siblings.hpp"
#include "pair/trial_places.hpp"
#include "trace/replay.hpp"

namespace parity {

struct Trial {
  std::vector<Placed> placed;           // one, or siblings, by boundary
  double gain = 0;                      // powers of ten, over all boundaries looked at
  std::map<size_t, size_t> agreeing{};  // candidate tensors that agree with it and do not without -> their boundaries

  int agree() const { return static_cast<int>(agreeing.size()); }
  size_t boundary() const { return placed.front().boundary; }
  size_t candidate() const { return placed.front().candidate; }
  bool puts(size_t c) const { return std::ranges::count(placed, c, &Placed::candidate) > 0; }
};

class TrialScore {
 public:
  /// Both must outlive it.
  TrialScore(const TrialScene& scene, const TrialPlaces& places) : scene_(scene), places_(places) {}

  /// Runs `options.part`, which is given the trial's values, and sums what each follower gains.
  void add(Trial& trial, const ReplayOptions& options) const;

  /// What the port has in a pair's place; nullopt: no layout makes it the boundary's shape.
  std::optional<at::Tensor> theirs(const PortPair& pair) const;

 private:
  struct Gain {
    double gain = 0;  // powers of ten
    size_t boundary = 0;
  };

  bool agrees(const NamedTensor& value, size_t c) const;
  bool repeats(size_t c, size_t other) const;
  std::optional<at::Tensor> of_pair(const Trial& trial, size_t t, const at::Tensor& value,
                                    std::map<size_t, Gain>& gains) const;
  std::pair<size_t, double> nearest(const NamedTensor& value, const Trial& trial, size_t t) const;
  double nearest_to(const NamedTensor& value, size_t c) const;

  const TrialLimits& limits_ = kPairLimits.trial;
  const TrialScene& scene_;
  const TrialPlaces& places_;
};

}  // namespace parity
