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
#include "pair/part_on_pairs.hpp"
#include "pair/segments.hpp"
#include "pair/trial_places.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

// Powers of ten by which contents agree: 0 when they do not, 6 to rounding of fp32.
double nearness(double distance) {
  return -std::log10(std::clamp<double>(distance, kPairLimits.evidence.least_distance, 1));
}

class TrialSearch {
 public:
  TrialSearch(const TrialScene& scene, double& work)
      : scene_(scene), work_(work), places_(scene), work_of_ops_(work_of_ops(scene.reference)) {}

  std::optional<PortPair> run() {
    for (const size_t end : places_.troubled()) {
      std::vector<Trial> found;  // by boundary
      size_t best = 0;
      int tried = 0;
      for (const size_t b : places_.unpaired_before(end)) {
        std::vector<Trial> trials = fitting(b);
        if (trials.empty()) continue;
        if (++tried > limits_.boundaries) break;
        auto trial = best_of(b, std::move(trials));
        if (trial && (found.empty() || trial->gain > limits_.clearly * found[best].gain)) best = found.size();
        if (trial) found.push_back(std::move(*trial));
        if (work_ < 0 || (!found.empty() && found[best].agree() >= limits_.sure)) break;
      }
      if (!found.empty()) return pair_of(*cause_of(found, best));
      if (work_ < 0) break;
    }
    return only_one_between();
  }

 private:
  struct Trial {
    size_t boundary = 0, candidate = 0;
    Layout layout;
    double gain = 0;                      // powers of ten, over all boundaries looked at
    std::map<size_t, size_t> agreeing{};  // candidate tensors that agree with it and do not without -> their boundaries

    int agree() const { return static_cast<int>(agreeing.size()); }
  };

  // Where two values in a row are wrong nothing agrees with either. Of a value that is off, a module's result before it
  // is the one tensor of its shape that the port has at that place, if it has one, and that is no other's.
  std::optional<PortPair> only_one_between() const {
    std::map<size_t, std::vector<size_t>> results;  // by candidate tensor
    for (const size_t end : places_.troubled()) {
      if (!places_.paired(end)) continue;
      std::set<int64_t> seen;  // a value once, under its first name
      for (const size_t b : places_.unpaired_before(end))
        if (!is_op_path(boundary(b).path) && seen.insert(boundary(b).value.id).second)
          if (const auto c = only_possible(b); c && !port_has(b)) results[*c].push_back(b);
      for (const auto& [c, of] : results)
        if (of.size() == 1)
          return PortPair{of[0], c, {}, limits_.by_size, "order and shape: the only one between its neighbours", 1};
      results.clear();
    }
    return std::nullopt;
  }

  // Under whatever pair: then it is not what is wrong. A block without its residual gives what the layer before gave.
  bool port_has(size_t b) const {
    const size_t here = scene_.here.position_of(b);
    for (size_t there = 0; there < scene_.there.tensors.size(); ++there) {
      const auto link = compare_content(scene_.here.tensors, scene_.there.tensors, here, there);
      if (link && link->distance <= kPairLimits.content.same) return true;
    }
    return false;
  }

  std::optional<size_t> only_possible(size_t b) const {
    std::optional<size_t> only;
    for (const size_t c : scene_.pairing.unmatched) {
      if (scene_.candidate[c].shape != boundary(b).value.shape || !places_.order().possible(b, c)) continue;
      if (only) return std::nullopt;
      only = c;
    }
    return only;
  }

  // The earliest trial that the best follows from, or that is certain by itself: rounding grows on the way, and what
  // lies nearer to the end explains more of it.
  std::vector<Trial>::const_iterator cause_of(const std::vector<Trial>& found, size_t best) const {
    return std::find_if(found.begin(), found.end(), [&](const Trial& earlier) {
      if (earlier.boundary == found[best].boundary || earlier.agree() >= limits_.certain) return true;
      const auto follows = earlier.agreeing.find(found[best].candidate);
      return follows != earlier.agreeing.end() &&
             boundary(follows->second).value.id == boundary(found[best].boundary).value.id;
    });
  }

  const Boundary& boundary(size_t b) const { return scene_.reference.boundaries[b]; }

  // The next boundaries that move with b, up to the pairs that cut it off: ops, and modules, of which a port may have
  // the results alone (a quantiser's two hundred ops can lie between two of them).
  std::vector<size_t> followers(size_t b) const {
    std::vector<bool> moves(places_.count(), false);
    moves[b] = true;
    std::vector<size_t> found;
    int left[] = {static_cast<int>(limits_.followers), static_cast<int>(limits_.followers)};  // modules, ops
    for (size_t t = b + 1; t < places_.count() && (left[0] > 0 || left[1] > 0); ++t) {
      for (const size_t a : places_.direct()[t]) moves[t] = moves[t] || (moves[a] && (a == b || !places_.paired(a)));
      const bool op = is_op_path(boundary(t).path);
      if (moves[t] && boundary(t).comparable && scene_.here.find(t) && boundary(t).value.id != boundary(b).value.id &&
          left[op]-- > 0)
        found.push_back(t);
    }
    return found;
  }

  PartOnPairs part_to(const std::vector<size_t>& targets, size_t b) const {
    std::vector<bool> marked(places_.count(), false);
    for (size_t i = 0; i < places_.count(); ++i) marked[i] = places_.paired(i) != nullptr;
    marked[b] = true;
    for (const size_t t : targets) marked[t] = true;
    return part_on_pairs(scene_.reference, marked, targets, work_of_ops_);
  }

  std::optional<Trial> best_of(size_t b, std::vector<Trial> trials) {
    const std::vector<size_t> targets = followers(b);
    if (targets.empty()) return std::nullopt;
    ReplayOptions options;
    const PartOnPairs part = part_to(targets, b);
    options.part = part.part;
    for (const size_t a : part.needed)
      if (a != b && places_.paired(a) != nullptr)
        if (auto value = theirs(*places_.paired(a))) options.given[boundary(a).value.id] = *value;
    std::optional<Trial> best;
    for (Trial& trial : trials) {
      work_ -= part.work;
      const auto value = trial.layout.as_shape(scene_.candidate[trial.candidate].load(), boundary(b).value.shape);
      if (!value) continue;
      options.given[boundary(b).value.id] = *value;
      score(trial, options);
      if (trial.agree() > 0 && trial.gain >= limits_.least_gain && (!best || trial.gain > best->gain)) best = trial;
      if (work_ < 0 || (best && best->agree() >= limits_.sure)) break;
    }
    return best;
  }

  // Free tensors of the candidate that may be b, the nearest after what b is computed from first.
  std::vector<Trial> fitting(size_t b) const {
    std::vector<Trial> trials;
    for (const size_t c : places_.free()) {
      if (trials.size() >= static_cast<size_t>(limits_.candidates)) break;
      if (!scene_.there.find(c) || !places_.order().possible(b, c)) continue;
      const auto link = compare_content(scene_.here.tensors, scene_.there.tensors, scene_.here.position_of(b),
                                        scene_.there.position_of(c));
      if (link && !is_part(*link)) trials.push_back({b, c, link->layout});
    }
    return trials;
  }

  std::optional<at::Tensor> theirs(const PortPair& pair) const {
    return pair.layout.as_shape(scene_.candidate[pair.candidate].load(), boundary(pair.boundary).value.shape);
  }

  struct Gain {
    double gain = 0;  // powers of ten
    size_t boundary = 0;
  };

  // Sums what each follower gains; a tensor of the candidate counts once.
  void score(Trial& trial, const ReplayOptions& options) {
    std::map<size_t, Gain> gains;  // by candidate tensor
    try {
      replay(scene_.dump, scene_.reference, options,
             [&](size_t t, const at::Tensor& value) -> std::optional<at::Tensor> {
               if (places_.paired(t)) return score_pair(trial, t, value, gains);
               const NamedTensor& before = *scene_.here.find(t);
               const NamedTensor after{before.path, before.call, before.dtype, before.shape, fingerprint_of(value)};
               const auto [candidate, near] = nearest(after, trial, t);
               if (near < nearness(kPairLimits.content.same)) return std::nullopt;
               const double gain = near - nearest_to(before, candidate);
               if (gain > gains[candidate].gain) gains[candidate] = {gain, t};
               return std::nullopt;
             });
    } catch (const Error&) {  // a part that cannot run alone says nothing
      return;
    }
    for (const auto& [candidate, found] : gains) {
      trial.gain += found.gain;
      if (found.gain > limits_.agrees) trial.agreeing.emplace(candidate, found.boundary);
    }
  }

  std::optional<at::Tensor> score_pair(const Trial& trial, size_t t, const at::Tensor& value,
                                       std::map<size_t, Gain>& gains) const {
    const auto own = theirs(*places_.paired(t));
    if (!own || places_.paired(t)->candidate == trial.candidate) return std::nullopt;
    const double after = measure_sums(value, *own).rel_l2.value_or(1);
    gains[places_.paired(t)->candidate] = {nearness(after) - nearness(scene_.off.contains(t) ? scene_.off.at(t) : 1),
                                           t};
    return own;
  }

  // The free tensor after the trial's that is most like what the program has; how near.
  std::pair<size_t, double> nearest(const NamedTensor& value, const Trial& trial, size_t t) const {
    std::pair<size_t, double> best{0, 0};
    int looked_at = 0;
    for (const size_t c : scene_.pairing.unmatched) {
      if (c <= trial.candidate || !scene_.there.find(c) || !places_.order().possible(t, c)) continue;
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
    return {
        trial.boundary,
        trial.candidate,
        trial.layout,
        limits_.confidence,
        fmt::format("a trial: {} later values agree with the port's when the program goes on from it", trial.agree()),
        1};
  }

  const TrialLimits& limits_ = kPairLimits.trial;
  const TrialScene& scene_;
  double& work_;
  const TrialPlaces places_;
  const std::vector<double> work_of_ops_;
};

}  // namespace

std::optional<PortPair> pair_on_trial(const TrialScene& scene, double& work) {
  if (work < 0) return std::nullopt;
  return TrialSearch(scene, work).run();
}

}  // namespace parity
