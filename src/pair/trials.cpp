#include "pair/trials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/error.hpp"
#include "measure/measure.hpp"
#include "pair/confidence.hpp"
#include "pair/limits.hpp"
#include "pair/links.hpp"
#include "pair/order.hpp"
#include "pair/part_on_pairs.hpp"
#include "pair/segments.hpp"

namespace parity {
namespace {

// Powers of ten by which contents agree: 0 when they do not, 6 to rounding of fp32.
double nearness(double distance) {
  return -std::log10(std::clamp<double>(distance, kPairLimits.evidence.least_distance, 1));
}

class TrialSearch {
 public:
  TrialSearch(const TrialScene& scene, double& work)
      : scene_(scene),
        work_(work),
        count_(scene.reference.boundaries.size()),
        paired_(count_, nullptr),
        direct_(scene.reference.marked_ancestors(std::vector<bool>(count_, true))),
        work_of_ops_(work_of_ops(scene.reference)),
        order_(scene.reference, known_pairs(scene.pairing, {})) {
    for (const PortPair& pair : scene.pairing.pairs) paired_[pair.boundary] = &pair;
    find_free();
    find_noise();
  }

  std::optional<PortPair> run() {
    for (const size_t end : troubled()) {
      std::optional<Trial> best;
      for (const size_t b : unpaired_before(end)) {
        if (auto trial = best_of(b); trial && (!best || trial->gain > limits_.clearly * best->gain)) best = trial;
        if (work_ < 0 || (best && best->agree >= limits_.sure)) break;
      }
      if (best) return pair_of(*best);
      if (work_ < 0) break;
    }
    return std::nullopt;
  }

 private:
  struct Trial {
    size_t boundary = 0, candidate = 0;
    Layout layout;
    double gain = 0;  // powers of ten, over all boundaries looked at
    int agree = 0;    // of them, those that agree with it and do not without
  };

  static std::vector<std::pair<size_t, size_t>> known_pairs(const PortPairing& pairing,
                                                            const std::vector<size_t>& free) {
    std::vector<std::pair<size_t, size_t>> known;
    for (const PortPair& pair : pairing.pairs)
      if (!std::binary_search(free.begin(), free.end(), pair.candidate))
        known.emplace_back(pair.boundary, pair.candidate);
    return known;
  }

  // What is unpaired, and what repeats an earlier value: under a second name of that, or after all that is computed
  // from it. A stale value of the layer before looks so, and a block's result that lacks its residual.
  void find_free() {
    free_ = scene_.pairing.unmatched;
    std::set<int64_t> known;  // values that an earlier pair stands for
    for (const PortPair& pair : scene_.pairing.pairs) {
      const bool op = boundary(pair.boundary).path.find('/') != std::string::npos,
                 again = !known.insert(boundary(pair.boundary).value.id).second;
      if (!pair.evidence.starts_with("content") || !(again || (op && !order_.possible(pair.boundary, pair.candidate))))
        continue;
      free_.push_back(pair.candidate);
      repeats_ = true;
    }
    std::sort(free_.begin(), free_.end());
    order_ = PairingOrder(scene_.reference, known_pairs(scene_.pairing, free_));
  }

  // How far pairs are off by rounding: the median, as most of a port is right.
  void find_noise() {
    std::vector<double> off;
    for (const auto& [b, distance] : scene_.off) off.push_back(distance);
    if (off.empty()) return;
    const auto middle = off.begin() + static_cast<ptrdiff_t>(off.size() / 2);
    std::nth_element(off.begin(), middle, off.end());
    const EvidenceLimits& evidence = kPairLimits.evidence;
    most_off_ = std::clamp<double>(evidence.off_noise * *middle, evidence.least_noise, kPairLimits.family.agrees);
  }

  const Boundary& boundary(size_t b) const { return scene_.reference.boundaries[b]; }

  // Values that do not come out, with something unpaired before them: pairs that are off, results without one. What is
  // known to be off may be so by a value before it that was taken for another.
  std::vector<size_t> troubled() const {
    std::vector<size_t> found;
    for (size_t b = 0; b < count_ && found.size() < static_cast<size_t>(limits_.ends); ++b) {
      if (scene_.vouched.contains(b) && !repeats_) continue;
      const auto off = scene_.off.find(b);
      const bool result =
          boundary(b).path.empty() && boundary(b).comparable && at::isFloatingType(boundary(b).value.dtype);
      if (paired_[b] ? off != scene_.off.end() && off->second > most_off_ : result && !order_.known_by_another_name(b))
        if (!unpaired_before(b).empty()) found.push_back(b);
    }
    return found;
  }

  // What `end` is computed from since the pairs before it, the earliest first; modules before ops of the same place.
  std::vector<size_t> unpaired_before(size_t end) const {
    std::vector<bool> needed(count_, false), from_pair(count_, false);
    needed[end] = true;
    for (size_t b = end + 1; b-- > 0;)
      if (needed[b] && (b == end || !paired_[b]))
        for (const size_t a : direct_[b]) needed[a] = true;
    std::vector<size_t> found;
    for (size_t b = 0; b < end; ++b) {
      for (const size_t a : direct_[b]) from_pair[b] = from_pair[b] || paired_[a] || from_pair[a];
      if (needed[b] && !paired_[b] && from_pair[b] && boundary(b).comparable && scene_.here.find(b) &&
          at::isFloatingType(boundary(b).value.dtype) && !order_.known_by_another_name(b))
        found.push_back(b);
    }
    if (found.size() > static_cast<size_t>(limits_.boundaries)) found.resize(static_cast<size_t>(limits_.boundaries));
    return found;
  }

  // The next boundaries that move with b, up to the pairs that cut it off.
  std::vector<size_t> followers(size_t b) const {
    std::vector<bool> moves(count_, false);
    moves[b] = true;
    std::vector<size_t> found;
    for (size_t t = b + 1; t < count_ && found.size() < static_cast<size_t>(limits_.followers); ++t) {
      for (const size_t a : direct_[t]) moves[t] = moves[t] || (moves[a] && (a == b || !paired_[a]));
      if (moves[t] && boundary(t).comparable && scene_.here.find(t) && boundary(t).value.id != boundary(b).value.id)
        found.push_back(t);
    }
    return found;
  }

  PartOnPairs part_to(const std::vector<size_t>& targets, size_t b) const {
    std::vector<bool> marked(count_, false);
    for (size_t i = 0; i < count_; ++i) marked[i] = paired_[i] != nullptr;
    marked[b] = true;
    for (const size_t t : targets) marked[t] = true;
    return part_on_pairs(scene_.reference, marked, targets, work_of_ops_);
  }

  std::optional<Trial> best_of(size_t b) {
    std::vector<Trial> trials = fitting(b);
    if (trials.empty()) return std::nullopt;
    const std::vector<size_t> targets = followers(b);
    if (targets.empty()) return std::nullopt;
    ReplayOptions options;
    const PartOnPairs part = part_to(targets, b);
    options.part = part.part;
    for (const size_t a : part.needed)
      if (a == b || paired_[a] == nullptr)
        continue;
      else if (auto value = theirs(*paired_[a]))
        options.given[boundary(a).value.id] = *value;
    std::optional<Trial> best;
    for (Trial& trial : trials) {
      work_ -= part.work;
      const Fitted value = trial.layout.fit_reference(scene_.candidate[trial.candidate].load());
      if (!value.tensor.defined() || value.tensor.sizes() != at::IntArrayRef(boundary(b).value.shape)) continue;
      options.given[boundary(b).value.id] = value.tensor;
      score(trial, options);
      if (trial.agree > 0 && trial.gain >= limits_.least_gain && (!best || trial.gain > best->gain)) best = trial;
      if (work_ < 0 || (best && best->agree >= limits_.sure)) break;
    }
    return best;
  }

  // Free tensors of the candidate that may be b, the nearest after what b is computed from first.
  std::vector<Trial> fitting(size_t b) const {
    std::vector<Trial> trials;
    for (const size_t c : free_) {
      if (trials.size() >= static_cast<size_t>(limits_.candidates)) break;
      if (!scene_.there.find(c) || !order_.possible(b, c)) continue;
      const auto link = compare_content(scene_.here.tensors, scene_.there.tensors, scene_.here.position_of(b),
                                        scene_.there.position_of(c));
      if (link && !is_part(*link)) trials.push_back({b, c, link->layout});
    }
    return trials;
  }

  std::optional<at::Tensor> theirs(const PortPair& pair) const {
    const at::Tensor value = pair.layout.fit_reference(scene_.candidate[pair.candidate].load()).tensor;
    if (!value.defined() || value.sizes() != at::IntArrayRef(boundary(pair.boundary).value.shape)) return std::nullopt;
    return value;
  }

  // Sums what each follower gains; a tensor of the candidate counts once.
  void score(Trial& trial, const ReplayOptions& options) {
    std::map<size_t, double> gains;  // by candidate tensor
    try {
      replay(scene_.dump, scene_.reference, options,
             [&](size_t t, const at::Tensor& value) -> std::optional<at::Tensor> {
               if (paired_[t]) return score_pair(trial, t, value, gains);
               const NamedTensor& before = *scene_.here.find(t);
               const NamedTensor after{before.path, before.call, before.dtype, before.shape, fingerprint_of(value)};
               const auto [candidate, near] = nearest(after, trial, t);
               if (near < nearness(kPairLimits.content.same)) return std::nullopt;
               const double gain = near - nearest_to(before, candidate);
               gains[candidate] = std::max(gains[candidate], gain);
               return std::nullopt;
             });
    } catch (const Error&) {  // a part that cannot run alone says nothing
      return;
    }
    for (const auto& [candidate, gain] : gains) {
      trial.gain += gain;
      trial.agree += gain > limits_.agrees;
    }
  }

  std::optional<at::Tensor> score_pair(const Trial& trial, size_t t, const at::Tensor& value,
                                       std::map<size_t, double>& gains) const {
    const auto own = theirs(*paired_[t]);
    if (!own || paired_[t]->candidate == trial.candidate) return std::nullopt;
    const double after = measure_sums(value, *own).rel_l2.value_or(1);
    gains[paired_[t]->candidate] = nearness(after) - nearness(scene_.off.contains(t) ? scene_.off.at(t) : 1);
    return own;
  }

  // The free tensor after the trial's that is most like what the program has; how near.
  std::pair<size_t, double> nearest(const NamedTensor& value, const Trial& trial, size_t t) const {
    std::pair<size_t, double> best{0, 0};
    int looked_at = 0;
    for (const size_t c : scene_.pairing.unmatched) {
      if (c <= trial.candidate || !scene_.there.find(c) || !order_.possible(t, c)) continue;
      if (++looked_at > limits_.candidates) break;
      if (const double near = nearest_to(value, c); near > best.second) best = {c, near};
    }
    return best;
  }

  double nearest_to(const NamedTensor& value, size_t c) const {
    const std::vector<NamedTensor> one{value}, other{*scene_.there.find(c)};
    const auto link = compare_content(one, other, 0, 0);
    return link ? link->weight * nearness(link->distance) : 0;
  }

  PortPair pair_of(const Trial& trial) const {
    return {trial.boundary,
            trial.candidate,
            trial.layout,
            limits_.confidence,
            fmt::format("a trial: {} later values agree with the port's when the program goes on from it", trial.agree),
            1};
  }

  const TrialLimits& limits_ = kPairLimits.trial;
  const TrialScene& scene_;
  double& work_;
  const size_t count_;
  std::vector<const PortPair*> paired_;  // by boundary
  std::vector<size_t> free_;             // tensors of the candidate that may stand for another value
  double most_off_ = 0;                  // relative L2 of a pair that comes out
  bool repeats_ = false;                 // are there some that are paired?
  const std::vector<std::vector<size_t>> direct_;
  const std::vector<double> work_of_ops_;
  PairingOrder order_;
};

}  // namespace

std::optional<PortPair> pair_on_trial(const TrialScene& scene, double& work) {
  if (work < 0) return std::nullopt;
  return TrialSearch(scene, work).run();
}

}  // namespace parity
