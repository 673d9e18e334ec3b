#include "judge/naming.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/precision.hpp"

namespace parity {

double detectable_amplitude(const Finding& f, const Thresholds& limits) {
  return f.fit.sigma() == 0 ? INFINITY : limits.z.value * std::abs(f.fit.amplitude / f.fit.sigma());
}

bool is_within_null(const Finding& f, const Thresholds& limits) {
  return std::abs(f.fit.amplitude) < limits.null_z_factor.value * f.null_amplitude;
}

namespace {

// Is the difference this change, and not another that happens to point there?
bool significant(const Finding& f, const Thresholds& limits) {
  const double amplitude = std::abs(f.fit.amplitude),
               sigma = f.fit.sigma() == 0 ? INFINITY : amplitude / std::abs(f.fit.sigma());
  const bool fits = f.explained() > limits.explained.value && std::abs(f.fit.fisher()) > limits.z.value;
  if (!fits && std::abs(f.fit.sigma()) < limits.z.value) return false;
  if (f.rest > limits.much_nearer.value && is_within_null(f, limits)) return false;
  return !f.fixed_amplitude || std::abs(f.fit.amplitude - 1) <= std::max<double>(limits.amplitude_tolerance.value,
                                                                                 limits.amplitude_sigma.value * sigma);
}

double unexplained(const Finding& f) { return std::max<double>(0, 1 - f.explained()); }

// The largest share that a finding may leave unexplained beside one that leaves `least`, up to the noise.
double as_good_as(double least, const Finding& f, const Thresholds& limits) {
  return limits.equally_good.value * least + limits.equally_good_noise.value * f.noise +
         limits.equally_good_floor.value;
}

}  // namespace

const Finding* best_finding(const std::vector<Finding>& findings, const Thresholds& limits) {
  double least = INFINITY;
  for (const Finding& f : findings)
    if (significant(f, limits)) least = std::min(least, unexplained(f));
  // Equally good up to the noise: the one that says more, of fixed size before free or fitted, then the better one.
  const Finding* best = nullptr;
  const auto key = [&](const Finding& f) {  // one that gives the candidate's very bits is that change
    const bool same_bits = f.bitwise > limits.same_bits.value;
    return std::tuple(!same_bits, f.rank, !f.fixed_amplitude, f.fitted, unexplained(f));
  };
  for (const Finding& f : findings) {
    if (!significant(f, limits) || unexplained(f) > as_good_as(least, f, limits)) continue;
    if (best == nullptr || key(f) < key(*best)) best = &f;
  }
  return best;
}

std::vector<const Finding*> equally_good_names(const Finding& best, const std::vector<Finding>& findings,
                                               const Thresholds& limits) {
  std::vector<const Finding*> names;
  for (const Finding& f : findings) {
    const bool named = f.fault == best.fault || std::any_of(names.begin(), names.end(), [&f](const Finding* name) {
                         return name->fault == f.fault;
                       });
    if (named || best.bitwise < 0 || f.bitwise < 0 || !significant(f, limits)) continue;
    if (unexplained(f) <= as_good_as(unexplained(best), f, limits) &&
        f.bitwise + (1 - limits.same_bits.value) >= best.bitwise)
      names.push_back(&f);
  }
  return names;
}

std::string size_text(const Finding& f) {
  return f.step == 0 ? fmt::format("amplitude {:.2f}", f.fit.amplitude)
                     : fmt::format("factor {:.4g}", 1 + f.fit.amplitude * f.step);
}

bool explains_enough(const Finding& f, const Segment& segment, const Thresholds& limits) {
  constexpr int kOneModule = 4;  // products: query, key, value and what is made of their result
  if (f.free_size > 0 && f.gate == Gate::logic) return f.explained() >= limits.whole.value;
  const bool clear = segment.products <= kOneModule && f.noise < limits.equally_good_floor.value;
  return f.explained() >= limits.explained.value * (clear ? 2 : 1);
}

const Finding* cast_of_this_size(const std::vector<Finding>& findings, double error, const Thresholds& limits) {
  const Finding* nearest = nullptr;
  if (error > limits.rounding_size.value * unit_roundoff(at::kBFloat16)) return nearest;  // more than a few roundings
  double distance = std::log(limits.size_factor.value);
  for (const Finding& f : findings) {
    if (f.gate != Gate::dtype_path || f.by_elements || !(f.fit.size > 0)) continue;
    const double d = std::abs(std::log(error / f.fit.size));
    if (d < distance) nearest = &f, distance = d;
  }
  return nearest;
}

bool beyond_casts(const std::vector<Finding>& findings, const Evidence& e, const Segment& segment,
                  const Thresholds& limits) {
  const double unit = std::max(least_roundoff(e.candidate_dtype), least_roundoff(e.reference_dtype)),
               few = limits.rounding_size.value * std::max(unit, e.null_error);
  double squares = 0;
  for (const Finding& f : findings)
    if (f.gate == Gate::dtype_path && f.fit.size > 0) squares += f.fit.size * f.fit.size;
  if (squares > 0) return e.error > std::max(few, limits.size_factor.value * std::sqrt(squares));
  return e.error > few * static_cast<double>(segment.ops.size());
}

// ln of the ratio of N independent elements has a standard deviation of at most 1 / sqrt(2 N); two equal roundings give
// 1.41, one left out of two .71.
std::string rounding_by_error(const Evidence& e, const Thresholds& limits) {
  const double own = e.recorded_error, other = e.error,
               count = std::max<double>(1, static_cast<double>(e.forced.count));
  const double margin = limits.ratio_margin.value + limits.sampling_sigma.value / std::sqrt(count);
  if (!(own > 0) || !(other > 0) || e.towards_zero > limits.truncation_share.value) return "";
  if (std::log(other / own) > margin) return "extra rounding: ";
  return std::log(other / own) < -margin ? "missing rounding: " : "";
}

bool flips_by_chance(const Finding& f, double differing, const Thresholds& limits) {
  const double z = limits.z.value;
  return differing * std::log(4) < z * z / 2 && std::abs(f.fit.sigma()) < z;
}

bool explains_the_difference(const Finding& f, bool half_width, const Thresholds& limits) {
  if (!(f.rest < limits.nearer.value)) return false;
  if (f.fitted && std::abs(f.fit.sigma()) < limits.fitted_sigma.value) return false;
  const bool cast = f.gate == Gate::dtype_path && half_width;
  const double most = (cast ? limits.whole_cast : limits.whole).value;
  if (f.explained() > most && f.fit.fisher() > limits.whole_sigma.value) return true;
  if (std::abs(f.fit.sigma()) < limits.z.value) return false;
  const double factor = limits.free_amplitude.value, size = std::abs(f.fit.amplitude);
  return f.fixed_amplitude || (size <= factor && size >= 1 / factor);
}

}  // namespace parity
