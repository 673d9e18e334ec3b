#include "judge/port.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/dtype_kind.hpp"
#include "core/glob.hpp"
#include "core/precision.hpp"
#include "core/segment.hpp"
#include "diagnose/finding.hpp"

namespace parity {
namespace {

constexpr double kWhole = 8;  // sigma by Fisher's transform: a few hundred directions are tried on a tensor

std::string percent(double share) { return fmt::format("{:.3g} %", 100 * share); }

// One row under judgement: each test either fails it (true) or adds the limit that it kept.
class PortJudge {
 public:
  PortJudge(OpResult& row, const Evidence& evidence, const Segment& segment, const std::vector<Finding>& findings,
            const Thresholds& limits)
      : row_(row),
        e_(evidence),
        segment_(segment),
        limits_(limits),
        unit_(std::max(unit_roundoff(evidence.reference_dtype), 0x1p-53)),
        count_(std::max<double>(1, static_cast<double>(evidence.forced.count))),
        findings_(findings),
        best_(best_finding(findings, limits)) {}

  void judge() {
    const bool failed = structure() || dtype() || bitwise() || magnitude() || flips() || bias() || named();
    if (failed) return accept_declared();
    if (const std::string reason = why_untrusted(); !reason.empty()) {
      row_.verdict = Verdict::untrusted;
      row_.diagnosis = reason;
      return;
    }
    row_.verdict = Verdict::pass;
  }

 private:
  bool fail(Gate gate, std::string text, Verdict verdict = Verdict::fail) {
    row_.verdict = verdict;
    row_.gate = gate;
    row_.diagnosis = std::move(text);
    return true;
  }

  // The best name found for a difference above the noise, then the numbers.
  bool fail_named(Gate gate, const std::string& numbers) {
    if (best_ == nullptr || best_->explained() < limits_.explained.value) {
      if (const Finding* like = gate == Gate::logic ? of_this_size() : nullptr)
        return fail(Gate::dtype_path,
                    fmt::format("{} by its size ({} would change as much, {:.2g}, though not these elements): {}",
                                like->fault, like->detail, like->fit.size, numbers));
      return fail(gate, (gate == Gate::dtype_path ? rounding_by_error() : "") + numbers);
    }
    return fail(best_->gate, fmt::format("{} ({}; explains {} of the difference, amplitude {:.2f}, z {:.0f}): {}",
                                         best_->fault, best_->detail, percent(std::clamp(best_->explained(), 0., 1.)),
                                         best_->fit.amplitude, best_->fit.z, numbers));
  }

  // More error than the reference's own: something more is rounded; less: a rounding is left out. ln R of N independent
  // elements has a standard deviation of 1 / sqrt(2 N) or less; two equal roundings give 1.41, one
  // left out of two .71.
  std::string rounding_by_error() const {
    const double own = e_.oracle.reference_error.value_or(0), other = e_.oracle.candidate_error.value_or(0);
    const double margin = .05 + 2.33 / std::sqrt(count_);
    if (!(own > 0) || !(other > 0) || e_.towards_zero > .9) return "";
    if (std::log(other / own) > margin) return "extra rounding: ";
    return std::log(other / own) < -margin ? "missing rounding: " : "";
  }

  // In a wide tensor of a mixed run: the cast placement whose change is as large as the candidate's error, within a
  // factor of 3. Roundings of other intermediate values (another formula's) hit other elements and are of that size.
  const Finding* of_this_size() const {
    const Finding* nearest = nullptr;
    double distance = std::log(3);
    for (const Finding& f : findings_) {
      if (f.gate != Gate::dtype_path || !(f.fit.size > 0)) continue;
      const double d = std::abs(std::log(e_.oracle.candidate_error.value_or(0) / f.fit.size));
      if (d < distance) nearest = &f, distance = d;
    }
    return nearest;
  }

  bool structure() {
    if (dtype_class(e_.reference_dtype) != dtype_class(e_.candidate_dtype))
      return fail(Gate::structure,
                  fmt::format("dtype class differs: reference {}, candidate {}", dtype_name(e_.reference_dtype),
                              dtype_name(e_.candidate_dtype)),
                  Verdict::shape);
    if (e_.forced.special_mismatch == 0) return false;
    return fail(Gate::structure,
                fmt::format("NaN origin: NaN or Inf at {} elements where the reference's program, on the same inputs, "
                            "has none or others ({} non-finite expected, {} found)",
                            e_.forced.special_mismatch, e_.forced.nan_reference, e_.forced.nan_candidate));
  }

  // A port in fp64 is judged by its logic; any other difference of width is a missing or extra rounding.
  bool dtype() {
    const double error = e_.oracle.candidate_error.value_or(e_.forced.difference_norm > 0 ? INFINITY : 0);
    if (e_.candidate_dtype == at::kDouble || e_.candidate_dtype == at::kComplexDouble) return logic(error);
    if (e_.candidate_dtype == e_.reference_dtype) return false;
    if (!at::isFloatingType(e_.reference_dtype) && !at::isComplexType(e_.reference_dtype)) return false;  // integers
    const bool narrower = unit_roundoff(e_.candidate_dtype) > unit_roundoff(e_.reference_dtype);
    return fail_named(Gate::dtype_path, fmt::format("{}: the reference has {} here, the candidate {}",
                                                    narrower ? "extra rounding" : "missing rounding",
                                                    dtype_name(e_.reference_dtype), dtype_name(e_.candidate_dtype)));
  }

  bool logic(double error) {
    const double limit = std::max(limits_.logic_rel_l2.value, 6 * std::sqrt(segment_.sum_length) * 0x1p-53);
    row_.logic = {error, limit, error <= limit ? Verdict::pass : Verdict::fail};
    row_.limits.push_back({"logic.rel_l2", limit, false, limits_.logic_rel_l2.origin});
    fp64_ = true;
    return !(error <= limit) &&
           fail_named(Gate::logic, fmt::format("in fp64, on the candidate's own inputs, relative L2 is {:.2g} (limit "
                                               "{:.0e}): the formula or a constant differs, not the rounding",
                                               error, limit));
  }

  // Integers, and values that are another name of one compared before, or are only moved.
  bool bitwise() {
    if (fp64_) return false;
    const bool number = at::isFloatingType(e_.reference_dtype) || at::isComplexType(e_.reference_dtype);
    if (number && (segment_.arithmetic || !segment_.kind.starts_with("copy"))) return false;
    row_.limits.push_back({"bitwise_equal_share", 1, true, "integers and copies: bitwise"});
    const double share = e_.forced.bitwise_equal_share.value_or(0);
    return share < 1 && fail_named(Gate::logic, fmt::format("{} of elements differ where values are only moved",
                                                            percent(1 - share)));
  }

  bool magnitude() {
    if (fp64_ || !e_.oracle.candidate_error) return false;
    const double error = *e_.oracle.candidate_error, null = std::max(e_.null_error, .4 * unit_);
    double limit = null;
    std::string origin;
    if (is_half(e_.reference_dtype)) {
      const Threshold& factor = segment_.attention ? limits_.half_attention_ratio : limits_.half_ratio;
      limit *= factor.value * (1 + 2.33 / std::sqrt(count_));
      origin = fmt::format("null {:.2g} x {}: {}", null, factor.value, factor.origin);
    } else {
      const double sum = limits_.fp32_sum_factor.value * std::sqrt(static_cast<double>(segment_.sum_length)) * unit_;
      limit = std::max(limits_.fp32_null_factor.value * null, sum);
      origin = fmt::format("null {:.2g} x {}, sum of {}: {}", null, limits_.fp32_null_factor.value, segment_.sum_length,
                           limits_.fp32_null_factor.origin);
    }
    row_.limits.push_back({"candidate_error", limit, false, origin});
    if (error <= limit) return false;
    return fail_named(
        rounding_sized(error) ? Gate::dtype_path : Gate::logic,
        fmt::format("on the candidate's own inputs its error is {:.2g} ({:.3g} u), the reference's own {:.2g}, "
                    "limit {:.2g}",
                    error, error / unit_, e_.oracle.reference_error.value_or(0), limit));
  }

  // Could a few roundings to half width make this error? In fp32 a finding must say so.
  bool rounding_sized(double error) const {
    return is_half(e_.reference_dtype) && error < 4 * std::max(e_.null_error, unit_);
  }

  double flip_limit() const {
    const double share = limits_.half_unequal_share.value + limits_.half_null_unequal_factor.value * e_.null_unequal;
    return share + 3 * std::sqrt(share / count_) + 2 / count_;
  }

  bool flips() {
    if (fp64_ || !is_half(e_.reference_dtype) || segment_.attention || !e_.forced.bitwise_equal_share) return false;
    const double unequal = e_.unequal, limit = flip_limit();
    row_.limits.push_back({"bitwise_equal_share", 1 - limit, true,
                           fmt::format("null {}: {}", percent(e_.null_unequal), limits_.half_unequal_share.origin)});
    if (unequal <= limit) return false;
    const bool truncated = e_.towards_zero > .95 && unequal > .25 && e_.forced.max_ulp.value_or(9) <= 2;
    return fail_named(
        Gate::dtype_path,
        fmt::format("{}{} of elements differ bitwise from the reference's casts on the same inputs (limit {}): "
                    "a rounding is placed differently",
                    truncated ? "truncation: every change is towards zero; " : "", percent(unequal), percent(limit)));
  }

  bool bias() {
    if (fp64_ || !e_.oracle.candidate_error || count_ < 64) return false;
    const double z = std::max(limits_.z.value, limits_.null_z_factor.value * std::abs(e_.null_gain.z));
    const double gain = std::max({limits_.gain_in_u.value * unit_, 3 * std::abs(e_.null_gain.amplitude),
                                  is_half(e_.reference_dtype) ? 0. : 2 * unit_});
    row_.limits.push_back({"gain", gain, false, limits_.gain_in_u.origin});
    if (std::abs(e_.gain.z) <= z || std::abs(e_.gain.amplitude) <= gain) return false;
    return fail_named(
        Gate::logic, fmt::format("gain: values are {:+.3g} of their size off in one direction (z {:.0f}, limit {:.0f})",
                                 e_.gain.amplitude, e_.gain.z, z));
  }

  bool named() {
    if (best_ == nullptr || e_.forced.difference_norm == 0) return false;
    // A rsqrt or exp of another library is off by part of a rounding, the same for a whole row: XLA's rsqrt on CPU by
    // 1e-8 to 5e-8. No eps and no gain is told from that.
    if (!is_half(e_.reference_dtype) && !best_->fixed_amplitude &&
        std::abs(best_->fit.amplitude) * best_->fit.size <= 2 * unit_)
      return false;
    // Most of the difference in one direction: right arithmetics differ from each other at random.
    const bool cast = best_->gate == Gate::dtype_path && is_half(e_.reference_dtype);
    const bool whole =
        best_->explained() > (cast ? limits_.whole_cast : limits_.whole).value && best_->fit.fisher() > kWhole;
    if (!whole && std::abs(best_->fit.z) < limits_.z.value) return false;
    return fail(
        best_->gate,
        fmt::format(
            "{} ({}; amplitude {:.2f}, z {:.0f}): below every magnitude limit, found by its direction (size {:.2g})",
            best_->fault, best_->detail, best_->fit.amplitude, best_->fit.z, best_->fit.size));
  }

  void accept_declared() {
    if (row_.gate != Gate::dtype_path) return;
    for (const std::string& glob : limits_.accepted)
      if (matches_layer(row_.path, glob)) {
        row_.verdict = Verdict::pass;
        row_.diagnosis = fmt::format("declared (--accept-path {}): {}", glob, row_.diagnosis);
        return;
      }
  }

  std::string why_untrusted() const {
    const Stats& s = e_.forced;
    if (s.count == 0) return "empty tensor";
    if (s.nan_reference == s.count) return "no finite element in the reference";
    if (s.constant_reference && s.count > 1) return "the reference is constant: nothing was exercised";
    if (s.zeros_reference * 10 > s.count * 9 && s.count > 1)
      return "more than 90 % of the reference is zero: nothing was exercised";
    return "";
  }

  OpResult& row_;
  const Evidence& e_;
  const Segment& segment_;
  const Thresholds& limits_;
  const double unit_, count_;
  const std::vector<Finding>& findings_;
  const Finding* best_;
  bool fp64_ = false;
};

}  // namespace

double detectable_amplitude(const Finding& f, const Thresholds& limits) {
  return f.fit.z == 0 ? INFINITY : limits.z.value * std::abs(f.fit.amplitude / f.fit.z);
}

namespace {

// Is the difference this change, and not another that happens to point there?
bool significant(const Finding& f, const Thresholds& limits) {
  const double amplitude = std::abs(f.fit.amplitude), sigma = f.fit.z == 0 ? INFINITY : amplitude / std::abs(f.fit.z);
  const bool fits = f.explained() > limits.explained.value && std::abs(f.fit.fisher()) > limits.z.value;
  if (!fits && std::abs(f.fit.z) < limits.z.value) return false;
  if (amplitude < limits.null_z_factor.value * f.null_amplitude) return false;
  return !f.fixed_amplitude || std::abs(f.fit.amplitude - 1) <= limits.amplitude_tolerance.value + 4 * sigma;
}

double unexplained(const Finding& f) { return std::max(0., 1 - f.explained()); }

}  // namespace

const Finding* best_finding(const std::vector<Finding>& findings, const Thresholds& limits) {
  double least = INFINITY;
  for (const Finding& f : findings)
    if (significant(f, limits)) least = std::min(least, unexplained(f));
  // Equally good up to the noise: the one that says more, of fixed size before free, then the better one.
  const Finding* best = nullptr;
  const auto key = [](const Finding& f) { return std::tuple(f.rank, !f.fixed_amplitude, unexplained(f)); };
  for (const Finding& f : findings) {
    if (!significant(f, limits) || unexplained(f) > 1.3 * least + 2 * f.noise + .002) continue;
    if (best == nullptr || key(f) < key(*best)) best = &f;
  }
  return best;
}

void judge_port(OpResult& row, const Evidence& evidence, const Segment& segment, const std::vector<Finding>& findings,
                const Thresholds& limits) {
  PortJudge(row, evidence, segment, findings, limits).judge();
}

}  // namespace parity
