#include "judge/port.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"
#include "core/segment.hpp"
#include "diagnose/finding.hpp"
#include "judge/declared.hpp"
#include "judge/error_limit.hpp"
#include "judge/exercised.hpp"
#include "judge/naming.hpp"
#include "judge/same_numbers.hpp"

namespace parity {
namespace {

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
        unit_(least_roundoff(evidence.reference_dtype)),
        count_(std::max<double>(1, static_cast<double>(evidence.forced.count))),
        findings_(findings),
        best_(best_finding(findings, limits)) {}

  void judge() {
    if (pass_same_numbers(row_, e_)) return;
    if (structure() || dtype() || integers() || bitwise() || magnitude() || flips() || bias() || rounded_to_half() ||
        named())
      return pass_if_declared(row_, declarable_, limits_);
    row_.verdict = Verdict::pass;
    row_.not_exercised = why_not_exercised(e_.forced);
    if (row_.not_exercised.empty()) power();
  }

 private:
  bool fail(Gate gate, std::string text, Verdict verdict = Verdict::fail) {
    row_.verdict = verdict;
    row_.gate = gate;
    row_.diagnosis = std::move(text);
    return true;
  }

  bool best_explains() const { return best_ != nullptr && explains_enough(*best_, segment_, limits_); }

  // The best name found for a difference above the noise, else that of a cast of its size; then the numbers.
  bool fail_named(Gate gate, const std::string& numbers) {
    if (best_explains()) return fail_as_best(numbers);
    if (const Finding* like = gate == Gate::logic ? cast_of_this_size(findings_, e_.error, limits_) : nullptr) {
      declarable_ = {like->fault, true};
      return fail(Gate::dtype_path,
                  fmt::format("{} by its size ({} would change as much, {:.2g}, though not these elements): {}",
                              like->fault, like->detail(), like->fit.size, numbers));
    }
    if (segment_.draws)
      return fail(Gate::logic, "random numbers of its own, where the reference's are those that it drew: " + numbers);
    return fail(gate, (gate == Gate::dtype_path ? rounding_by_error(e_, limits_) : "") + numbers);
  }

  bool fail_as_best(const std::string& numbers) {
    std::string bits =
        best_->bitwise < 0 ? "" : fmt::format(" and gives {} of the elements bitwise", percent(best_->bitwise));
    for (const Finding* other : equally_good_names(*best_, findings_, limits_))
      bits += fmt::format(", as \"{}\" does", other->fault);
    return fail(best_->gate, fmt::format("{} ({}; explains {} of the difference{}, {}, z {:.0f}): {}", best_->fault,
                                         best_->detail(), percent(std::clamp<double>(best_->explained(), 0, 1)), bits,
                                         size_text(*best_), best_->fit.z, numbers));
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

  // A port in fp64 is judged by its logic; any other difference of width is a missing or extra rounding. The
  // reference's own fp64 values may lie behind narrower ops: a page's boxes, joined with ones computed in bf16. What is
  // nearer to fp64 than the recorded value has no other formula, whatever lies in that direction.
  bool dtype() {
    const double limit = logic_limit(segment_, limits_);
    const bool rounded_before = is_double(e_.reference_dtype) && e_.recorded_error > limit;
    if (is_double(e_.candidate_dtype) && !rounded_before) return logic(limit);
    if (e_.candidate_dtype == e_.reference_dtype || !number()) return false;
    const bool narrower = unit_roundoff(e_.candidate_dtype) > unit_roundoff(e_.reference_dtype);
    const std::string dtypes = fmt::format("the reference has {} here, the candidate {}",
                                           dtype_name(e_.reference_dtype), dtype_name(e_.candidate_dtype));
    if (beyond_casts(findings_, e_, segment_, limits_) && !best_explains())
      return fail(Gate::logic, fmt::format("{}, and its error is {:.2g}: more than its roundings", dtypes, e_.error));
    const bool nearer = best_ != nullptr && best_->gate == Gate::logic && e_.error < e_.recorded_error;
    if (best_explains() && !nearer) return fail_as_best(dtypes);
    declarable_.name = narrower ? "extra rounding" : "missing rounding";
    return fail(Gate::dtype_path, fmt::format("{}: {}", declarable_.name, dtypes));
  }

  bool logic(double limit) {
    const double error = e_.error;
    row_.logic = {error, limit, error <= limit ? Verdict::pass : Verdict::fail};
    row_.limits.push_back({"logic.rel_l2", limit, false, limits_.logic_rel_l2.origin});
    fp64_ = true;
    return !(error <= limit) &&
           fail_named(Gate::logic, fmt::format("in fp64, on the candidate's own inputs, relative L2 is {:.2g} (limit "
                                               "{:.0e}): the formula or a constant differs, not the rounding",
                                               error, limit));
  }

  bool number() const { return is_float(e_.reference_dtype); }

  // Equal, or equal as sets (a top-k's order), or decided otherwise only where valid arithmetics disagree, too: a tie.
  bool integers() {
    if (number() || fp64_) return false;
    row_.limits.push_back({"decided_otherwise", 0, false, "rows of integers that no valid arithmetic decides so"});
    row_.limits.back().measured = static_cast<double>(e_.decided_otherwise);
    if (e_.decided_otherwise == 0) return false;
    return fail_named(
        Gate::logic,
        fmt::format("{} rows hold other integers, where all valid arithmetics agree ({} of elements differ)",
                    e_.decided_otherwise, percent(1 - equal_share(e_.forced))));
  }

  // Values that are another name of one compared before, or are only moved, out of no table that each side computes.
  bool bitwise() {
    if (fp64_ || !number() || segment_.arithmetic || !segment_.kind.starts_with("copy") || e_.null_unequal > 0)
      return false;
    const double share = equal_share(e_.forced);
    row_.limits.push_back({"bitwise_equal_share", 1, true, "copies: bitwise"});
    row_.limits.back().measured = share;
    return share < 1 && fail_named(Gate::logic, fmt::format("{} of elements differ where values are only moved",
                                                            percent(1 - share)));
  }

  Limit limit_of(const Errors& errors, double share = 1) const {
    return error_limit(errors, share * count_, e_.reference_dtype, segment_, limits_);
  }

  Limit settled_limit() const { return limit_of(*e_.settled, e_.settled->share); }

  // On all rows, and on those where valid arithmetics agree.
  bool magnitude() {
    if (fp64_ || !number() || e_.forced.count == 0) return false;
    if (beyond(e_, limit_of(e_), "")) return true;
    if (!e_.settled) return false;
    Limit limit = settled_limit();
    limit.statistic = "settled_rows.candidate_error";
    return beyond(*e_.settled, limit,
                  fmt::format("on the {} of rows where valid arithmetics agree, ", percent(e_.settled->share)));
  }

  bool beyond(const Errors& e, const Limit& limit, const std::string& where) {
    row_.limits.push_back(limit);
    row_.limits.back().measured = e.error;
    if (e.error <= limit.value) return false;
    return fail_named(rounding_sized(e) ? Gate::dtype_path : Gate::logic,
                      e.scale > 0
                          ? fmt::format("{}on the candidate's own inputs its error is {:.2g} ({:.3g} u), the "
                                        "reference's own {:.2g}, limit {:.2g}",
                                        where, e.error, e.error / unit_, e.recorded_error, limit.value)
                          : fmt::format("the reference is exactly zero here, on the candidate's own inputs, and the "
                                        "candidate is not: norm {:.2g}, limit {:.2g}",
                                        e.error, limit.value));
  }

  // Could a few roundings to half width make this error? In fp32 a finding must say so.
  bool rounding_sized(const Errors& e) const {
    return is_half(e_.reference_dtype) && e.error < limits_.rounding_size.value * std::max(e.null_error, unit_);
  }

  double flip_limit() const {
    const double share = limits_.half_unequal_share.value + limits_.half_null_unequal_factor.value * e_.null_unequal;
    return std::min<double>(
        1, share + limits_.share_sigma.value * std::sqrt(share / count_) + limits_.share_elements.value / count_);
  }

  bool flips() {
    if (fp64_ || !is_half(e_.reference_dtype) || segment_.attention || !e_.forced.bitwise_equal_share) return false;
    const double in_one_row = segment_.rounds_inside ? e_.fullest_row : 0,  // by one rounding: as good as none
        unequal = std::max<double>(0, e_.unequal - in_one_row), limit = flip_limit();
    if (limit >= 1) return false;  // valid arithmetics differ everywhere: a share says nothing
    row_.limits.push_back({"bitwise_equal_share", 1 - limit, true,
                           fmt::format("null {}: {}", percent(e_.null_unequal), limits_.half_unequal_share.origin)});
    row_.limits.back().measured = 1 - unequal;
    if (unequal <= limit) return false;
    const bool truncated = e_.towards_zero > limits_.truncation_share.value &&
                           unequal > limits_.truncation_unequal.value &&
                           e_.forced.max_ulp.value_or(INFINITY) <= limits_.truncation_ulp.value;
    return fail_named(
        Gate::dtype_path,
        fmt::format("{}{} of elements differ bitwise from the reference's casts on the same inputs (limit {}): "
                    "a rounding is placed differently",
                    truncated ? "truncation: every change is towards zero; " : "", percent(unequal), percent(limit)));
  }

  double gain_limit() const {
    return std::max({limits_.gain_in_u.value * unit_, limits_.null_gain_factor.value * std::abs(e_.null_gain.amplitude),
                     is_half(e_.reference_dtype) ? 0 : limits_.fp32_gain_in_u.value * unit_});
  }

  bool bias() {
    if (fp64_ || !number() || e_.scale == 0 || count_ < limits_.bias_elements.value) return false;
    const double z = std::max(limits_.z.value, limits_.null_z_factor.value * std::abs(e_.null_gain.sigma()));
    const double gain = gain_limit();
    row_.limits.push_back({"gain", gain, false, limits_.gain_in_u.origin});
    row_.limits.back().measured = std::abs(e_.gain.amplitude);
    if (std::abs(e_.gain.sigma()) <= z || std::abs(e_.gain.amplitude) <= gain) return false;
    const std::string numbers =
        fmt::format("gain: values are {:+.3g} of their size off in one direction (z {:.0f}, limit {:.1f})",
                    e_.gain.amplitude, e_.gain.sigma(), z);
    return best_explains() ? fail_as_best(numbers) : fail(Gate::logic, numbers);  // no cast's: it leans one way
  }

  // Each value is one of a narrower format, though not the reference's: a cast, however far valid arithmetics lie
  // apart.
  bool rounded_to_half() {
    if (!e_.narrower || e_.narrower->witnesses < limits_.narrower_witnesses.value) return false;
    return fail_named(Gate::dtype_path,
                      fmt::format("{}the reference has {} here, and the candidate's values are all {}'s",
                                  rounding_by_error(e_, limits_).empty() ? "extra rounding: " : "",
                                  dtype_name(e_.reference_dtype), dtype_name(e_.narrower->dtype)));
  }

  // Below every limit of size: a change that is known by its direction.
  bool named() {
    if (best_ == nullptr || best_->more_exact || e_.forced.difference_norm == 0) return false;
    const bool half = is_half(e_.reference_dtype),
               sure = best_->fixed_amplitude && best_->explained() > limits_.same_bits.value;
    const double size = best_->fit.size, library = limits_.elementwise_library.value * unit_;
    if (!half && !sure && std::abs(best_->fit.amplitude) * size <= library) return false;
    const double anew = std::min(limits_.cast_in_null.value * e_.null_error, limits_.cast_units.value * unit_);
    if (!half && best_->gate == Gate::dtype_path && size <= anew) return false;
    if (best_->gate == Gate::logic && is_within_null(*best_, limits_)) return false;  // a formula in other words
    const double least_gain = (half ? limits_.gain_in_u : limits_.fp32_gain_in_u).value * unit_;
    if (best_->fault == kGain && best_->free_size > 0 && best_->free_size <= least_gain) return false;
    if (!explains_the_difference(*best_, half, limits_)) return false;
    if (half && flips_by_chance(*best_, (1 - equal_share(e_.forced)) * count_, limits_)) return false;
    return fail(best_->gate,
                fmt::format("{} ({}; {}, z {:.0f}): below every magnitude limit, found by its direction (size {:.2g})",
                            best_->fault, best_->detail(), size_text(*best_), best_->fit.sigma(), best_->fit.size));
  }

  // Where valid arithmetics alone lie far apart, a pass would say nothing; unless the candidate lies near the recorded
  // value.
  void power() {
    if (fp64_ || !number() || e_.forced.difference_norm == 0) return;
    if (e_.forced.rel_l2 && *e_.forced.rel_l2 <= near_recorded(e_, segment_, limits_)) return;
    const double limit = (e_.settled ? settled_limit() : limit_of(e_)).value;
    if (limit < limits_.undecided.value) return;
    row_.verdict = Verdict::inconclusive;
    row_.diagnosis = fmt::format(
        "valid arithmetics alone lie {:.2g} apart here: a fault below {:.2g} cannot be told from them; compare in "
        "fp32, or record this part at level op",
        e_.null_error, limit);
  }

  OpResult& row_;
  const Evidence& e_;
  const Segment& segment_;
  const Thresholds& limits_;
  const double unit_, count_;
  const std::vector<Finding>& findings_;
  const Finding* best_;
  Declarable declarable_;
  bool fp64_ = false;
};

}  // namespace

void judge_port(OpResult& row, const Evidence& evidence, const Segment& segment, const std::vector<Finding>& findings,
                const Thresholds& limits) {
  PortJudge(row, evidence, segment, findings, limits).judge();
}

}  // namespace parity
