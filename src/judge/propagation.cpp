#include "judge/propagation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "judge/model_limits.hpp"

// What is tested. Let f be the op (the reference's program since the compared points before it), x the reference's
// values there, x' those of the port's free run, r = f(x) + e and c = f(x') + e' what the two have. Then
//     c - r = [f(x') - f(x)] + [e' - e].
// The first bracket is inherited. Predicting its norm as amplification times input error needs errors without
// structure: attention damps white noise to .37 and passes on whole an error that all keys share, so a random draw, or
// the largest of four, decides nothing here; it is reported (`predicted_free`, together with e and e', which fall anew
// whenever the inputs differ). f(x') itself can be computed: the reference's program in fp64, going on from the port's
// free values. What remains is
//     own = ||c - f(x')|| / ||f(x')||,
// and that is e', the op's own rounding, unless c depends on something that x' does not hold.
//
// How large e' may be is known from the same op on this machine: candidate_error and reference_error (both sides on x),
// and the null, `FreeNull::own`: the same statistic of the reference's own program run free in other valid arithmetic.
//     limit = k(n) max(candidate_error, reference_error, null) + u
// u: inputs of the forced run that happen to be exact (a product by a power of two) are not any more in the free run,
// so that every element may be rounded once where none was. k(n): two independent rms errors over n elements have a
// ratio whose logarithm is normal with variance 1 / n (1 / (2 n) each), hence exp(z / sqrt(n)); at least
// own_rounding_factor, since elements of a row share a rounded mean or maximum and count as fewer.
// In fp64 both sides are held to the logic limit, as on the reference's inputs.

namespace parity {
namespace {

std::optional<double> own_error(const Stats& s) {
  if (s.special_mismatch > 0) return std::nullopt;
  if (s.rel_l2) return s.rel_l2;
  return s.difference_norm == 0 ? std::optional<double>(0.0) : std::nullopt;
}

double rounding_of(const OpResult& row) {
  if (!row.oracle) return 0;
  return std::max(row.oracle->candidate_error.value_or(0), row.oracle->reference_error.value_or(0));
}

void predict(OpResult& row, const PropagationInput& in) {
  if (!row.amplification || !row.forced) return;
  const double inherited = *row.amplification * in.largest_input_error;
  if (in.largest_input_error == 0) {  // the same inputs: the same roundings
    row.predicted_free = own_error(*row.forced);
    return;
  }
  const double here = row.oracle ? row.oracle->candidate_error.value_or(0) : row.forced->rel_l2.value_or(0);
  const double there = row.oracle ? row.oracle->reference_error.value_or(0) : 0;
  row.predicted_free = std::hypot(inherited, here, there);
}

Limit limit_of(const OpResult& row, const PropagationInput& in) {
  const ModelLimits& limits = model_limits();
  if (in.is_fp64) return {"own_inputs_rel_l2", limits.logic_rel_l2.value, false, "fp64: the logic limit"};
  const double factor = rounding_factor(in.own->count), rounding = std::max(rounding_of(row), in.null.own);
  return {"own_inputs_rel_l2", factor * rounding + in.unit, false,
          fmt::format("the op's rounding: {:.2g} on the reference's inputs, {:.2g} in {} free runs of the reference's "
                      "own program; {:.3g} times the larger, and one roundoff",
                      rounding_of(row), in.null.own, in.null.runs, factor)};
}

}  // namespace

double rounding_factor(int64_t elements) {
  const double n = static_cast<double>(std::max<int64_t>(elements, 1));
  return std::max(model_limits().own_rounding_factor.value,
                  std::exp(model_limits().own_rounding_z.value / std::sqrt(n)));
}

void judge_propagation(OpResult& row, const PropagationInput& in) {
  if (!row.free || row.verdict == Verdict::shape) return;
  predict(row, in);
  if (!in.own) return;
  const auto own = own_error(*in.own);
  row.free_oracle = OracleStats{};
  row.free_oracle->candidate_error = own;
  if (in.null.runs > 0) row.free_oracle->reference_error = in.null.own;
  if (row.verdict != Verdict::pass) return;
  row.limits.push_back(limit_of(row, in));
  const double limit = row.limits.back().value;
  if (own && *own <= limit) return;
  const bool severe = in.is_fp64 || !own || !(*own <= model_limits().severe_factor.value * limit);
  row.verdict = severe ? Verdict::fail : Verdict::inconclusive;
  row.gate = Gate::propagation;
  const std::string apart = own ? fmt::format("{:.2g}", *own) : std::string("not finite");
  const std::string moved =
      in.null.runs == 0
          ? ""
          : fmt::format(", where the reference's own program run free in other arithmetic moves {:.2g}", in.null.moved);
  row.diagnosis = fmt::format(
      "on the values that the port itself computed before it, relative L2 from the reference's op in fp64 is {} (limit "
      "{:.2g}), though on the reference's values it passes: state is carried that the inputs do not show (a buffer "
      "used "
      "twice, a value overwritten); free-running relative L2 {:.2g}{}",
      apart, limit, row.free->rel_l2.value_or(NAN), moved);
}

}  // namespace parity
