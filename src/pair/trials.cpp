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
#include "pair/only_between.hpp"
#include "pair/other_shape.hpp"
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
      std::vector<Trial> found;
      for (const bool ops : {false, true})  // a port that records little records what modules return
        try_before(end, ops, found);
      if (!found.empty()) return pair_of(cause_of(found));
      if (work_ < 0) break;
    }
    if (auto pair = only_one_between(scene_, places_)) return pair;
    return first_of_other_shape(scene_, places_);
  }

 private:
  struct Trial {
    size_t boundary = 0, candidate = 0;
    Layout layout;
    double gain = 0;                      // powers of ten, over all boundaries looked at
    std::map<size_t, size_t> agreeing{};  // candidate tensors that agree with it and do not without -> their boundaries

    int agree() const { return static_cast<int>(agreeing.size()); }
  };

  bool is_sure(const Trial& trial) const {
    return trial.agree() >= limits_.sure && trial.gain >= limits_.sure_gain * trial.agree();
  }

  // The boundaries in turn, up to one that is sure.
  void try_before(size_t end, bool ops, std::vector<Trial>& found) {
    int tried = 0;
    for (const size_t b : places_.unpaired_before(end)) {
      if (work_ < 0 || std::ranges::any_of(found, [&](const Trial& t) { return is_sure(t); })) return;
      if (is_op_path(boundary(b).path) != ops) continue;
      std::vector<Trial> trials = fitting(b);
      if (trials.empty()) continue;
      if (++tried > limits_.boundaries) return;
      if (auto trial = best_of(b, std::move(trials))) found.push_back(std::move(*trial));
    }
  }

  // The earliest trial that the best follows from, or that is certain by itself: rounding grows on the way, and what
  // lies nearer to the end explains more of it.
  const Trial& cause_of(const std::vector<Trial>& found) const {
    const Trial* best = &found.front();
    for (const Trial& trial : found)
      if (trial.gain > limits_.clearly * best->gain) best = &trial;
    const auto is_cause = [&](const Trial& earlier) {
      if (earlier.candidate == best->candidate) return false;  // it is one of the two
      if (earlier.agree() >= limits_.certain) return earlier.gain >= limits_.sure_gain * earlier.agree();
      const auto follows = earlier.agreeing.find(best->candidate);
      return follows != earlier.agreeing.end() &&
             boundary(follows->second).value.id == boundary(best->boundary).value.id;
    };
    const Trial* cause = best;
    for (const Trial& trial : found)
      if (trial.boundary < cause->boundary && is_cause(trial)) cause = &trial;
    return *cause;
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
      if (trial.agree() > 0 && trial.gain >= limits_.least_gain && (!best || trial.gain > limits_.clearly * best->gain))
        best = trial;
      if (work_ < 0 || (best && is_sure(*best))) break;
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
      if (link && !is_part(*link)) trials.push_back({b, c, layout_of(*link)});
    }
    return trials;
  }

  // Of values that are unlike, the order of axes that is least so is chance.
  Layout layout_of(const Link& link) const {
    const bool one_shape = scene_.here.tensors[link.reference].shape == scene_.there.tensors[link.candidate].shape;
    return one_shape && link.distance > kPairLimits.content.same ? Layout() : link.layout;
  }

  std::optional<at::Tensor> theirs(const PortPair& pair) const {
    return pair.layout.as_shape(scene_.candidate[pair.candidate].load(), boundary(pair.boundary).value.shape);
  }

  struct Gain {
    double gain = 0;  // powers of ten
    size_t boundary = 0;
  };

  // Sums what each follower gains; a tensor of the candidate counts once. Nothing is gained where an op that changes
  // the reference's value leaves the candidate's as it is: that is the op's result, which a norm without gain, or a
  // ReLU, does not change again.
  void score(Trial& trial, const ReplayOptions& options) {
    std::map<size_t, Gain> gains;  // by candidate tensor
    bool stays = false;
    try {
      replay(scene_.dump, scene_.reference, options,
             [&](size_t t, const at::Tensor& value) -> std::optional<at::Tensor> {
               if (places_.paired(t)) return score_pair(trial, t, value, gains);
               const NamedTensor& before = *scene_.here.find(t);
               const NamedTensor after{before.path, before.call, before.dtype, before.shape, fingerprint_of(value)};
               stays = stays || (agrees(after, trial.candidate) && !passes_on(trial.boundary, t));
               const auto [candidate, near] = nearest(after, trial, t);
               if (near < nearness(kPairLimits.content.same)) return std::nullopt;
               const double gain = near - nearest_to(before, candidate);
               if (gain > gains[candidate].gain) gains[candidate] = {gain, t};
               return std::nullopt;
             });
    } catch (const Error&) {  // a part that cannot run alone says nothing
      return;
    }
    if (stays) return;
    for (const auto& [candidate, found] : gains) {
      if (repeats(candidate, trial.candidate)) continue;
      trial.gain += found.gain;
      if (found.gain > limits_.agrees) trial.agreeing.emplace(candidate, found.boundary);
    }
  }

  bool agrees(const NamedTensor& value, size_t c) const {
    return nearest_to(value, c) >= nearness(kPairLimits.content.same);
  }

  // Dropout at inference gives a value another name: that says nothing of where it belongs.
  bool repeats(size_t c, size_t other) const {
    const NamedTensor &a = *scene_.there.find(c), &b = *scene_.there.find(other);
    return a.shape == b.shape && content_distance(a.print.readings[0], b.print.readings[0]) <= kPairLimits.content.same;
  }

  bool passes_on(size_t b, size_t t) const {
    const std::vector<NamedTensor>& here = scene_.here.tensors;
    const auto link = compare_content(here, here, scene_.here.position_of(b), scene_.here.position_of(t));
    return link && link->distance <= kPairLimits.content.same;
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
