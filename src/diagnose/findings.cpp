#include "diagnose/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"
#include "diagnose/finding.hpp"
#include "diagnose/limits.hpp"
#include "measure/local.hpp"
#include "measure/measure.hpp"

namespace parity {
namespace {

constexpr int64_t kSample = 1 << 18;  // elements that an amplitude is estimated from
constexpr int kAllScaled = 3;         // rank of a gain of all values: many faults scale a little on the way

// ||a - b||^2.
double squared_distance(const at::Tensor& a, const at::Tensor& b) {
  const double norm = measure_sums(a, b).difference_norm;
  return norm * norm;
}

class Matcher {
 public:
  Matcher(const BoundaryEvent& event, const at::Tensor& candidate, const std::vector<FaultHypothesis>& hypotheses)
      : event_(event),
        hypotheses_(hypotheses),
        dtype_(event.computed[kRecorded].scalar_type()),
        candidate_(candidate),
        recorded_(event.computed[kRecorded]),
        exact_(event.computed[kExact]),
        valid_(valid_values(event, hypotheses)) {
    const Stats whole = measure_sums(recorded_, candidate_);
    norm_ = whole.reference_norm;
    difference_ = nearest_ = whole.difference_norm * whole.difference_norm;
    if (!(difference_ > 0)) return;
    for (const at::Tensor& other : valid_) {
      noise_ = std::max(noise_, squared_distance(recorded_, other));
      nearest_ = std::min(nearest_, squared_distance(other, candidate_));
    }
    if (is_half(dtype_)) weight_ = noise_by_element(recorded_, valid_).rsqrt();
  }

  std::optional<Finding> match(const FaultHypothesis& hypothesis, const at::Tensor& changed) {
    add_direction(hypothesis, {changed, recorded_}, recorded_);
    return found_.empty() ? std::nullopt : std::optional(found_.back());
  }

  std::vector<Finding> run(int final_op) {
    // Rounded as the reference rounds, nothing can differ: there is nothing to explain.
    if (!(difference_ > 0)) return {};
    for (const DeviatingValue& d : event_.deviating)
      if (hypotheses_[d.deviation].wide_op >= 0 && hypotheses_[d.deviation].wide_op == final_op) wide_ = d.value;
    for (const DeviatingValue& d : event_.deviating)
      if (!hypotheses_[d.deviation].valid) add(hypotheses_[d.deviation], d.value);
    pursue();
    FaultHypothesis gain{std::string(kGain), "all values scaled", "", Gate::logic, false};
    gain.step = 1;
    gain.rank = kAllScaled;  // any other name says more
    add_direction(gain, recorded_, recorded_);
    return std::move(found_);
  }

 private:
  // What the replay has that the hypothesis was put into.
  const at::Tensor& unchanged(const FaultHypothesis& h) const {
    return h.deviation.lane == kExact ? exact_ : recorded_;
  }

  void add(const FaultHypothesis& h, const at::Tensor& value) {
    const size_t before = found_.size();
    if (h.exact)
      add_direction(h, {value, unchanged(h)}, unchanged(h));
    else
      add_direction(h, {value, event_.computed[kOracle]}, recorded_);
    if (h.arithmetic && found_.size() > before) found_.back().bitwise = bitwise_share(value);
  }

  // Rounded as the reference's value is, and held in the candidate's dtype.
  double bitwise_share(const at::Tensor& value) const {
    const at::Tensor rounded = value.is_complex() ? value : value.to(dtype_).to(candidate_.scalar_type());
    return rounded.eq(candidate_).to(at::kDouble).mean().item<double>();
  }

  // Plain, and for casts and gains in half width also with white noise: the one that stands out more.
  Projection fit(const Difference& difference, const Difference& direction, bool white_too,
                 int64_t statistics = 0) const {
    return stronger_projection(difference, direction, norm_, white_too ? weight_ : at::Tensor(), statistics);
  }

  void add_direction(const FaultHypothesis& h, const Difference& direction, const at::Tensor& base) {
    const bool white_too = h.gate == Gate::dtype_path || h.fault == kGain;
    Finding f{h, h.gate, h.fixed_amplitude, fit({candidate_, base}, direction, white_too, h.statistics)};
    f.rank = h.rank;
    f.step = h.step;
    f.by_elements = h.by_elements || f.fit.rows_alike < kFitting.same_rows;
    f.more_exact = h.more_exact;
    f.noise = noise_ / difference_;
    const bool few = f.fit.elements < kFitting.few_elements;
    if (!(f.fit.size > 0) || (few && f.explained() < kFitting.certain)) return;
    if (few && h.statistics > 0 && f.fit.size <= kFitting.of_a_statistic * unit_roundoff(dtype_)) return;
    if (h.fault == kGain && h.rank == kAllScaled && !is_half(dtype_) &&
        1 - f.explained() > kFitting.beside_gain + kFitting.own_noise * f.noise)
      return;
    const bool possible = h.least <= f.fit.amplitude && f.fit.amplitude <= h.most;
    f.rest = rest(f.fit.plain.left(h.fixed_amplitude ? 1 : f.fit.amplitude));
    if (!h.fixed_amplitude) f.free_size = std::abs(f.fit.amplitude) * f.fit.size;
    if (!h.fixed_amplitude && std::abs(f.fit.z) > kFitting.worth_rounding) add_rounded(h, f, direction);
    if (!possible) return;
    if (std::abs(f.fit.z) > kFitting.worth_a_null) f.null_amplitude = null_amplitude(direction, base, white_too);
    found_.push_back(std::move(f));
  }

  double rest(double squares_left) const { return nearest_ > 0 ? squares_left / nearest_ : INFINITY; }

  // The largest amplitude that a valid arithmetic has of the same direction.
  double null_amplitude(const Difference& direction, const at::Tensor& base, bool white_too) const {
    double largest = std::abs(fit({recorded_, base}, direction, white_too).amplitude);
    for (const at::Tensor& other : valid_)
      largest = std::max(largest, std::abs(fit({other, base}, direction, white_too).amplitude));
    return largest;
  }

  // Several casts placed otherwise at once: matching pursuit over the cast placements, each at its whole size (Mallat
  // and Zhang 1993). Begins at the placement that explains most; stops where none adds a twentieth of the difference.
  void pursue() {
    std::vector<const DeviatingValue*> placements;
    for (const DeviatingValue& d : event_.deviating)
      if (hypotheses_[d.deviation].gate == Gate::dtype_path && hypotheses_[d.deviation].exact) placements.push_back(&d);
    if (placements.empty()) return;
    at::Tensor left = raised(candidate_) - raised(recorded_), together = at::zeros_like(left);
    Finding combined;
    for (size_t parts = 0; static_cast<double>(parts) < kFitting.parts; ++parts) {
      const DeviatingValue* best = nullptr;
      Projection gain;
      for (const DeviatingValue* d : placements) {
        const Projection p = fit(left, {d->value, unchanged(hypotheses_[d->deviation])}, true);
        if (p.explained > gain.explained && std::abs(p.amplitude - 1) < kFitting.whole_part) best = d, gain = p;
      }
      if (best == nullptr || gain.explained < kFitting.least_gain) break;
      const FaultHypothesis& h = hypotheses_[best->deviation];
      const at::Tensor direction = raised(best->value) - raised(unchanged(h));
      left = left - direction;
      together = together + direction;
      if (parts == 0) combined = {h, h.gate, true};
      if (parts > 0) combined.what += fmt::format("; and {} ({})", h.fault, h.what);
      if (parts > 0 && h.place != combined.place) combined.place += " and " + h.place;
      if (parts > 0) combined.rank = h.rank + 1, combined.by_elements = true;  // two sizes together meet any
    }
    if (combined.rank == 0) return;  // one alone is among the findings
    combined.fit = fit({candidate_, recorded_}, together, true);
    combined.rest = rest(combined.fit.plain.left(1));
    combined.null_amplitude = null_amplitude(together, recorded_, true);
    combined.noise = noise_ / difference_;
    found_.push_back(std::move(combined));
  }

  // Below a rounding, a change of free size shows in which elements round another way.
  void add_rounded(const FaultHypothesis& h, Finding f, const Difference& change) {
    if (!is_half(dtype_) || !wide_.defined() || candidate_.scalar_type() != dtype_) return;
    const at::Tensor direction = change.base.defined() ? raised(change.value) - raised(change.base) : change.value;
    const at::Tensor wide = raised(wide_);
    const double amplitude = amplitude_by_rounding(wide, raised(direction), candidate_);
    if (amplitude < h.least || amplitude > h.most) return;
    const at::Tensor changed = (wide + amplitude * direction).to(dtype_);
    f.free_size = std::abs(amplitude) * f.fit.size;
    f.fit = fit({candidate_, exact_}, {changed, exact_}, false, h.statistics);
    if (!(f.fit.size > 0)) return;
    f.rest = rest(f.fit.plain.left(1));
    f.fixed_amplitude = true;  // predicted element by element: all of it or it is something else
    f.fitted = f.free_size <= unit_roundoff(dtype_);
    f.what += h.step == 0 ? fmt::format(", amplitude {:.3g}", amplitude)
                          : fmt::format(", factor {:.4g}", 1 + amplitude * h.step);
    f.step = 0;  // it is said now
    found_.push_back(std::move(f));
  }

  const BoundaryEvent& event_;
  const std::vector<FaultHypothesis>& hypotheses_;
  const at::ScalarType dtype_;
  const at::Tensor candidate_, recorded_, exact_;
  const std::vector<at::Tensor> valid_;  // by the other valid arithmetics
  at::Tensor weight_;                    // 1 / standard deviation of the noise at each element
  at::Tensor wide_;                      // the last op's result before its rounding
  double norm_ = 0, difference_ = 0, noise_ = 0, nearest_ = 0;
  std::vector<Finding> found_;
};

// Ends of the interval of reals that round to the values, as fp64.
std::pair<at::Tensor, at::Tensor> rounding_interval(const at::Tensor& values) {
  const at::Tensor bits = values.contiguous().view(at::kShort).to(at::kInt);
  // Neighbours in magnitude: one bit pattern more or less (zero has none below).
  const auto from_bits = [&](const at::Tensor& b) {
    return b.to(at::kShort).view(values.scalar_type()).to(at::kDouble);
  };
  const at::Tensor middle = values.to(at::kDouble), outer = from_bits(bits + 1), inner = from_bits(bits - 1);
  const at::Tensor a = (middle + outer) / 2, b = (middle + inner) / 2;
  return {at::minimum(a, b), at::maximum(a, b)};
}

}  // namespace

std::vector<at::Tensor> valid_values(const BoundaryEvent& event, const std::vector<FaultHypothesis>& hypotheses) {
  std::vector<at::Tensor> values(event.computed.begin() + kExact, event.computed.begin() + kLastValid + 1);
  for (at::Tensor& value :
       values)  // which experts a token goes to may depend on the arithmetic, and their rows with it
    if (value.sizes() != event.computed[kRecorded].sizes()) value = event.computed[kRecorded];
  for (const DeviatingValue& d : event.deviating)
    if (hypotheses[d.deviation].valid) values.push_back(d.value.to(event.computed[kRecorded].scalar_type()));
  return values;
}

double amplitude_by_rounding(const at::Tensor& wide, const at::Tensor& direction, const at::Tensor& candidate) {
  const int64_t stride = std::max<int64_t>(1, candidate.numel() / kSample);
  const auto sample = [&](const at::Tensor& t) { return t.reshape(-1).slice(0, 0, t.numel(), stride); };
  const at::Tensor g = sample(direction), w = sample(wide), c = sample(candidate);
  const auto [low, high] = rounding_interval(c);
  const at::Tensor a = (low - w) / g, b = (high - w) / g;
  const at::Tensor usable = g.ne(0).logical_and(c.ne(0)).logical_and(at::isfinite(a)).logical_and(at::isfinite(b));
  const at::Tensor first = at::minimum(a, b).masked_select(usable), last = at::maximum(a, b).masked_select(usable);
  if (first.numel() == 0) return 0;
  const at::Tensor ends = at::cat({first, last});
  const at::Tensor steps = at::cat({at::ones_like(first), -at::ones_like(last)});
  const auto [sorted, order] = ends.sort();
  const at::Tensor covered = steps.index_select(0, order).cumsum(0);
  const int64_t best = covered.argmax().item<int64_t>();
  if (best + 1 >= sorted.numel()) return sorted[best].item<double>();
  return (sorted[best].item<double>() + sorted[best + 1].item<double>()) / 2;
}

std::vector<Finding> match_hypotheses(const BoundaryEvent& event, const at::Tensor& candidate,
                                      const std::vector<FaultHypothesis>& hypotheses, int final_op) {
  const at::ScalarType dtype = event.computed[kRecorded].scalar_type();
  if (!at::isFloatingType(dtype) && !at::isComplexType(dtype)) return {};
  return Matcher(event, candidate, hypotheses).run(final_op);
}

std::optional<Finding> match_value(const BoundaryEvent& event, const at::Tensor& candidate,
                                   const std::vector<FaultHypothesis>& hypotheses, const FaultHypothesis& hypothesis,
                                   const at::Tensor& changed) {
  return Matcher(event, candidate, hypotheses).match(hypothesis, changed);
}

}  // namespace parity
