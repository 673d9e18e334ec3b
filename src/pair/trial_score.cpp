#include "pair/trial_score.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "measure/measure.hpp"
#include "pair/limits.hpp"
#include "pair/links.hpp"

namespace parity {
namespace {

// Powers of ten by which contents agree: 0 when they do not, 6 to rounding of fp32.
double nearness(double distance) {
  return -std::log10(std::clamp<double>(distance, kPairLimits.evidence.least_distance, 1));
}

}  // namespace

std::optional<at::Tensor> TrialScore::theirs(const PortPair& pair) const {
  return pair.layout.as_shape(scene_.candidate[pair.candidate].load(),
                              scene_.reference.boundaries[pair.boundary].value.shape);
}

// Sums what each follower gains; a tensor of the candidate counts once. Nothing is gained where an op that changes
// the reference's value leaves the candidate's as it is: that is the op's result, which a norm without gain, or a
// ReLU, does not change again.
void TrialScore::add(Trial& trial, const ReplayOptions& options) const {
  std::map<size_t, Gain> gains;  // by candidate tensor
  bool stays = false;
  try {
    replay(scene_.dump, scene_.reference, options, [&](size_t t, const at::Tensor& value) -> std::optional<at::Tensor> {
      if (places_.paired(t)) return of_pair(trial, t, value, gains);
      const NamedTensor& before = *scene_.here.find(t);
      const NamedTensor after{before.path, before.call, before.dtype, before.shape,
                              fingerprint_of(value, Origin::reference)};
      stays = stays || std::ranges::any_of(trial.placed, [&](const Placed& one) {
                return agrees(after, one.candidate) && !same_content(*scene_.here.find(one.boundary), before);
              });
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
    if (std::ranges::any_of(trial.placed, [&](const Placed& one) { return repeats(candidate, one.candidate); }))
      continue;
    trial.gain += found.gain;
    if (found.gain > limits_.agrees) trial.agreeing.emplace(candidate, found.boundary);
  }
}

bool TrialScore::agrees(const NamedTensor& value, size_t c) const {
  return is_near(value, *scene_.there.find(c), kPairLimits.content.same) &&
         nearest_to(value, c) >= nearness(kPairLimits.content.same);
}

// Dropout at inference gives a value another name: that says nothing of where it belongs.
bool TrialScore::repeats(size_t c, size_t other) const {
  const NamedTensor &a = *scene_.there.find(c), &b = *scene_.there.find(other);
  return a.shape == b.shape && content_distance(a.print.readings[0], b.print.readings[0]) <= kPairLimits.content.same;
}

std::optional<at::Tensor> TrialScore::of_pair(const Trial& trial, size_t t, const at::Tensor& value,
                                              std::map<size_t, Gain>& gains) const {
  const auto own = theirs(*places_.paired(t));
  if (!own || trial.puts(places_.paired(t)->candidate)) return std::nullopt;
  const double after = measure_sums(value, *own).rel_l2.value_or(1);
  gains[places_.paired(t)->candidate] = {nearness(after) - nearness(scene_.off.contains(t) ? scene_.off.at(t) : 1), t};
  return own;
}

// The free tensor after the trial's that is most like what the program has; how near.
std::pair<size_t, double> TrialScore::nearest(const NamedTensor& value, const Trial& trial, size_t t) const {
  std::pair<size_t, double> best{0, 0};
  int looked_at = 0;
  const size_t last = std::ranges::max(trial.placed, {}, &Placed::candidate).candidate;
  for (const size_t c : scene_.pairing.unmatched) {
    if (c <= last || !scene_.there.find(c) || !places_.order().possible(t, c)) continue;
    if (++looked_at > limits_.candidates) break;
    if (!is_near(value, *scene_.there.find(c), kPairLimits.content.same)) continue;  // hardly any is
    if (const double near = nearest_to(value, c); near > best.second) best = {c, near};
  }
  return best;
}

double TrialScore::nearest_to(const NamedTensor& value, size_t c) const {
  const auto link = compare_content(value, *scene_.there.find(c));
  return link ? link->weight * nearness(link->distance) : 0;
}

}  // namespace parity
